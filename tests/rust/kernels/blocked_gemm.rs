//! tcptune oracle: einsum ik,jk->ij
//! tcptune tolerance: form=max rel=0.05 abs=1.0
use furiosa_opt_std::prelude::*;

axes![I = 256, J = 64, K = 512, P = 2];

type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![I];

/// Sums over blocks of K: a partial product a step, added to what the steps before it gave.
#[device(chip = 1)]
pub fn blocked_gemm(
    device: &mut Device,
    a: &HbmTensor<bf16, Chip, m![I, K]>,
    b: &HbmTensor<bf16, Chip, m![J, K]>,
) -> HbmTensor<f32, Chip, m![I, J]> {
    let a_dm: DmTensor<bf16, Chip, Cluster, Slice, m![K]> = a.to_dm(&mut device.tdma);
    let b_dm: DmTensor<bf16, Chip, Cluster, Slice, m![J, K]> = b.to_dm(&mut device.tdma);
    let mut sum: DmTensor<f32, Chip, Cluster, Slice, m![J]> = product(device, &a_dm, &b_dm, 0);
    #[unroll]
    for block in 1..4 {
        let part = product(device, &a_dm, &b_dm, block);
        let mut next: DmTensor<f32, Chip, Cluster, Slice, m![J]> = DmTensor::new();
        device
            .main
            .begin_interleaved::<P, _, _, _, _, _>(sum.view(), part.view())
            .fetch::<m![J / 8, P], m![J % 8]>()
            .collect::<m![J / 8, P], m![J % 8]>()
            .vector_init()
            .vector_intra_slice_unzip::<P, m![J / 8]>()
            .vector_clip_zip(ClipBinaryOpF32::Add)
            .vector_final()
            .commit_trim::<m![J % 8]>()
            .commit_view(next.view_mut());
        sum = next;
    }
    sum.to_hbm(&mut device.tdma)
}

fn product(
    device: &mut Device,
    a: &DmTensor<bf16, Chip, Cluster, Slice, m![K]>,
    b: &DmTensor<bf16, Chip, Cluster, Slice, m![J, K]>,
    block: usize,
) -> DmTensor<f32, Chip, Cluster, Slice, m![J]> {
    let trf = device
        .sub
        .begin(b.view().tile::<m![K / 128], 1, m![J, 1 # 4, K % 128]>(block))
        .fetch::<m![J % 8, J / 8, K % 128 / 16], m![K % 16]>()
        .collect::<m![J % 8, J / 8, K % 128 / 16], m![K % 16]>()
        .to_trf::<m![J % 8], m![J / 8, K % 128]>();
    device
        .main
        .begin(a.view().tile::<m![K / 128], 1, m![1 # 4, K % 128]>(block))
        .fetch::<m![J / 8, K % 128 / 16], m![K % 16]>()
        .collect::<m![J / 8, K % 128 / 16], m![K % 16]>()
        .contract_outer::<m![J / 8, K % 128 / 32], m![K % 32], _, _, _>(&trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![J / 8]>()
        .contract_lane::<m![J / 8], m![J % 8]>(LaneMode::Interleaved)
        .commit_trim::<m![J % 8]>()
        .commit()
}

//! tcptune oracle: einsum pik,pjk->pij
//! tcptune tolerance: form=max rel=0.05 abs=1.0
use furiosa_opt_std::prelude::*;

axes![P = 4, I = 128, J = 128, K = 64];

type Chip = m![P];
type Cluster = m![I / 64];
type Slice = m![I % 64, J / 32];

/// A product on each of four chips, rows over both clusters, rows and columns over the slices.
#[device(chip = 4)]
pub fn chip_gemm(
    device: &mut Device,
    a: &HbmTensor<bf16, Chip, m![I, K]>,
    b: &HbmTensor<bf16, Chip, m![J, K]>,
) -> HbmTensor<bf16, Chip, m![I, J]> {
    let a_dm: DmTensor<bf16, Chip, Cluster, Slice, m![K]> = a.to_dm(&mut device.tdma);
    let b_dm: DmTensor<bf16, Chip, Cluster, Slice, m![J % 32, K]> = b.to_dm(&mut device.tdma);
    let b_trf = device
        .sub
        .begin(b_dm.view())
        .fetch::<m![J % 8, J / 8 % 4, K / 16], m![K % 16]>()
        .collect::<m![J % 8, J / 8 % 4, K / 16], m![K % 16]>()
        .to_trf::<m![J % 8], m![J / 8 % 4, K]>();
    let c: DmTensor<bf16, Chip, Cluster, Slice, m![J % 32]> = device
        .main
        .begin(a_dm.view())
        .fetch::<m![J / 8 % 4, K / 16], m![K % 16]>()
        .collect::<m![J / 8 % 4, K / 16], m![K % 16]>()
        .contract_outer::<m![J / 8 % 4, K / 32], m![K % 32], _, _, _>(&b_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![J / 8 % 4]>()
        .contract_lane::<m![J / 8 % 4], m![J % 8]>(LaneMode::Interleaved)
        .cast::<bf16, m![J % 8 # 16]>()
        .commit_trim::<m![J % 8]>()
        .commit();
    let out = c.to_hbm(&mut device.tdma);
    out
}

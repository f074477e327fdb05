//! tcptune oracle: einsum vmk,nk->vmn
//! tcptune tolerance: form=max rel=0.02 abs=0.1
use furiosa_opt_std::prelude::*;

axes![V = 32, M = 32, N = 8, K = 32];

type Chip = m![1];
type Cluster = m![M / 16];
type Slice = m![M % 16, V % 16];

#[device(chip = 1)]
pub fn bmatmul_k_in_time(
    device: &mut Device,
    a: &HbmTensor<bf16, Chip, m![V, M, K]>,
    b: &HbmTensor<bf16, Chip, m![N, K]>,
) -> HbmTensor<f32, Chip, m![V, M, N]> {
    let a_dm = a.to_dm::<Cluster, Slice, m![V / 16, K]>(&mut device.tdma);
    let b_dm = b.to_dm::<Cluster, Slice, m![N, K]>(&mut device.tdma);
    let trf = device
        .sub
        .begin(b_dm.view())
        .fetch::<m![N, K / 16], m![K % 16]>()
        .collect::<m![N, K / 16], m![K % 16]>()
        .to_trf::<m![N], m![K]>();
    device
        .main
        .begin(a_dm.view())
        .fetch::<m![V / 16, K], m![1 # 16]>()
        .collect::<m![V / 16, K], m![1 # 16]>()
        .contract_outer::<m![V / 16, K], m![1 # 16], _, _, _>(&trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![V / 16]>()
        .contract_lane::<m![V / 16], m![N]>(LaneMode::Interleaved)
        .commit_trim::<m![N]>()
        .commit::<m![V / 16, N]>()
        .to_hbm(&mut device.tdma)
}

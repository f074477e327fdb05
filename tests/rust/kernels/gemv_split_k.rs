//! tcptune oracle: einsum ij,j->i
//! tcptune tolerance: form=max rel=0.02 abs=0.5
use furiosa_opt_std::prelude::*;

axes![I = 64, J = 4096];

type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![J / 16];

/// GEMV whose summed axis lies over the 256 slices; every slice has 16 columns, the Inter-Slice Reducer adds.
#[device(chip = 1)]
pub fn gemv_split_k(
    device: &mut Device,
    matrix: &HbmTensor<bf16, Chip, m![I, J]>,
    vector: &HbmTensor<bf16, Chip, m![J]>,
) -> HbmTensor<f32, Chip, m![I]> {
    let matrix_dm: DmTensor<bf16, Chip, Cluster, Slice, m![I, J % 16]> = matrix.to_dm(&mut device.tdma);
    let vector_dm: DmTensor<bf16, Chip, Cluster, Slice, m![J % 16]> = vector.to_dm(&mut device.tdma);
    let vector_trf = device
        .sub
        .begin(vector_dm.view())
        .fetch::<m![1], m![J % 16]>()
        .collect::<m![1], m![J % 16]>()
        .to_trf::<m![1], m![J % 16]>();
    let sums: DmTensor<f32, Chip, Cluster, m![1 # 256], m![I, 1 # 8]> = device
        .main
        .begin(matrix_dm.view())
        .fetch::<m![I], m![J % 16]>()
        .collect::<m![I], m![J % 16]>()
        .contract_outer::<m![I], m![J % 16], _, _, _>(&vector_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![I]>()
        .contract_lane::<m![I], m![1 # 8]>(LaneMode::Sequential)
        .vector_init()
        .vector_inter_slice_reduce::<m![1 # 256], m![I]>(InterSliceReduceOpF32::Add)
        .vector_final()
        .commit_trim::<m![1 # 8]>()
        .commit();
    sums.to_hbm(&mut device.tdma)
}

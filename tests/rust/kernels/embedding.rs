use furiosa_opt_std::prelude::*;

axes![W = 1024, G = 512, D = 128];

type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![G / 2];

/// Rows of a table picked by positions that lie in DM, scaled.
#[device(chip = 1)]
pub fn embedding(
    device: &mut Device,
    table: &HbmTensor<bf16, Chip, m![W, D]>,
    index: &HbmTensor<i32, Chip, m![G]>,
) -> HbmTensor<bf16, Chip, m![G, D]> {
    let index_dm: DmTensor<i32, Chip, Cluster, Slice, m![G % 2]> = index.to_dm(&mut device.tdma);
    let rows: DmTensor<bf16, Chip, Cluster, Slice, m![G % 2, D]> = table.dma_gather_unscaled(&index_dm);
    let scaled: DmTensor<bf16, Chip, Cluster, Slice, m![G % 2, D]> = device
        .main
        .begin(rows.view())
        .fetch::<m![G % 2, D / 8], m![D % 8]>()
        .fetch_cast::<f32>()
        .collect::<m![G % 2, D / 8], m![D % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![G % 2, D / 4], m![D % 4]>()
        .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), 2.0f32)
        .vector_widen_concat::<m![G % 2, D / 8], m![D % 8]>()
        .vector_final()
        .cast::<bf16, m![D % 8 # 16]>()
        .commit_trim::<m![D % 8]>()
        .commit();
    scaled.to_hbm(&mut device.tdma)
}

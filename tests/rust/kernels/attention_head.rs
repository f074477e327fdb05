use furiosa_opt_std::prelude::*;

axes![T = 256, S = 64, D = 128, E = 128];

type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![T];
const SCALE: f32 = 0.088388347648;

/// One head: softmax(q k^T / sqrt(D)) v, one query a slice; keys and values stationary, values transposed by the host.
#[device(chip = 1)]
pub fn attention_head(
    device: &mut Device,
    q: &HbmTensor<bf16, Chip, m![T, D]>,
    k: &HbmTensor<bf16, Chip, m![S, D]>,
    v: &HbmTensor<bf16, Chip, m![E, S]>,
) -> HbmTensor<bf16, Chip, m![T, E]> {
    let q_dm: DmTensor<bf16, Chip, Cluster, Slice, m![D]> = q.to_dm(&mut device.tdma);
    let k_dm: DmTensor<bf16, Chip, Cluster, Slice, m![S, D]> = k.to_dm(&mut device.tdma);
    let v_dm: DmTensor<bf16, Chip, Cluster, Slice, m![E, S]> = v.to_dm(&mut device.tdma);

    let k_trf: TrfTensor<bf16, Chip, Cluster, Slice, m![S % 8], m![S / 8, D]> = device
        .sub
        .begin(k_dm.view())
        .fetch::<m![S % 8, S / 8, D / 16], m![D % 16]>()
        .collect::<m![S % 8, S / 8, D / 16], m![D % 16]>()
        .to_trf();

    // scores, scaled, and left in f32
    let scores: DmTensor<f32, Chip, Cluster, Slice, m![S]> = device
        .main
        .begin(q_dm.view())
        .fetch::<m![S / 8, D / 16], m![D % 16]>()
        .collect::<m![S / 8, D / 16], m![D % 16]>()
        .contract_outer::<m![S / 8, D / 32], m![D % 32], _, _, _>(&k_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![S / 8]>()
        .contract_lane::<m![S / 8], m![S % 8]>(LaneMode::Interleaved)
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S / 4], m![S % 4]>()
        .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), SCALE)
        .vector_widen_concat::<m![S / 8], m![S % 8]>()
        .vector_final()
        .commit_trim::<m![S % 8]>()
        .commit();

    let largest: DmTensor<f32, Chip, Cluster, Slice, m![1 # 8]> = device
        .main
        .begin(scores.view())
        .fetch::<m![S / 8], m![S % 8]>()
        .collect::<m![S / 8], m![S % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S / 4], m![S % 4]>()
        .vector_intra_slice_reduce::<S, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Max)
        .vector_widen_pad::<m![1 # 8]>()
        .vector_final()
        .commit_trim::<m![1 # 8]>()
        .commit();
    let largest_vrf: VrfTensor<f32, Chip, Cluster, Slice, m![1 # 8]> =
        device.sub.begin(largest.view()).fetch::<m![1], m![1 # 8]>().collect::<m![1], m![1 # 8]>().to_vrf();

    let inverse: DmTensor<f32, Chip, Cluster, Slice, m![1 # 8]> = device
        .main
        .begin(scores.view())
        .fetch::<m![S / 8], m![S % 8]>()
        .collect::<m![S / 8], m![S % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S / 4], m![S % 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, &largest_vrf)
        .vector_fp_unary(FpUnaryOp::Exp)
        .vector_intra_slice_reduce::<S, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Add)
        .vector_fp_div_with_mode(FpDivBinaryOp::DivF, BinaryArgMode::Mode10, 1.0f32)
        .vector_widen_pad::<m![1 # 8]>()
        .vector_final()
        .commit_trim::<m![1 # 8]>()
        .commit();
    let inverse_vrf: VrfTensor<f32, Chip, Cluster, Slice, m![1 # 8]> =
        device.sub.begin(inverse.view()).fetch::<m![1], m![1 # 8]>().collect::<m![1], m![1 # 8]>().to_vrf();

    let weights: DmTensor<bf16, Chip, Cluster, Slice, m![S]> = device
        .main
        .begin(scores.view())
        .fetch::<m![S / 8], m![S % 8]>()
        .collect::<m![S / 8], m![S % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S / 4], m![S % 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, &largest_vrf)
        .vector_fp_unary(FpUnaryOp::Exp)
        .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), &inverse_vrf)
        .vector_widen_concat::<m![S / 8], m![S % 8]>()
        .vector_final()
        .cast::<bf16, m![S % 8 # 16]>()
        .commit_trim::<m![S % 8]>()
        .commit();

    let v_trf: TrfTensor<bf16, Chip, Cluster, Slice, m![E % 8], m![E / 8, S]> = device
        .sub
        .begin(v_dm.view())
        .fetch::<m![E % 8, E / 8, S / 16], m![S % 16]>()
        .collect::<m![E % 8, E / 8, S / 16], m![S % 16]>()
        .to_trf();
    let out: DmTensor<bf16, Chip, Cluster, Slice, m![E]> = device
        .main
        .begin(weights.view())
        .fetch::<m![E / 8, S / 16], m![S % 16]>()
        .collect::<m![E / 8, S / 16], m![S % 16]>()
        .contract_outer::<m![E / 8, S / 32], m![S % 32], _, _, _>(&v_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![E / 8]>()
        .contract_lane::<m![E / 8], m![E % 8]>(LaneMode::Interleaved)
        .cast::<bf16, m![E % 8 # 16]>()
        .commit_trim::<m![E % 8]>()
        .commit();
    out.to_hbm(&mut device.tdma)
}

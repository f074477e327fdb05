use furiosa_opt_std::prelude::*;

axes![I = 256, K = 512];

type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![I];
type Scalar = m![1 # 8];

/// (x - mean) / sqrt(variance + eps), one row a slice.
#[device(chip = 1)]
pub fn layer_norm(device: &mut Device, x: &HbmTensor<bf16, Chip, m![I, K]>) -> HbmTensor<bf16, Chip, m![I, K]> {
    let x_dm = x.to_dm::<Cluster, Slice, m![K]>(&mut device.tdma);
    let mean = device
        .main
        .begin(x_dm.view())
        .fetch::<m![K / 8], m![K % 8]>()
        .fetch_cast::<f32>()
        .collect::<m![K / 8], m![K % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![K / 4], m![K % 4]>()
        .vector_intra_slice_reduce::<K, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Add)
        .vector_fp_div(FpDivBinaryOp::DivF, K::SIZE as f32)
        .vector_widen_pad::<Scalar>()
        .vector_final()
        .commit_trim::<Scalar>()
        .commit::<Scalar>();
    let mean_vrf = device.sub.begin(mean.view()).fetch::<m![1], Scalar>().collect::<m![1], Scalar>().to_vrf::<Scalar>();
    let variance = device
        .main
        .begin(x_dm.view())
        .fetch::<m![K / 8], m![K % 8]>()
        .fetch_cast::<f32>()
        .collect::<m![K / 8], m![K % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![K / 4], m![K % 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, &mean_vrf)
        .vector_stash()
        .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), Stash)
        .vector_intra_slice_reduce::<K, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Add)
        .vector_fp_div(FpDivBinaryOp::DivF, K::SIZE as f32)
        .vector_widen_pad::<Scalar>()
        .vector_clip(ClipBinaryOpF32::Add, 1e-5f32)
        .vector_final()
        .commit_trim::<Scalar>()
        .commit::<Scalar>();
    let inverse_vrf = device
        .main
        .begin(variance.view())
        .fetch::<m![1], Scalar>()
        .collect::<m![1], Scalar>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_trim::<m![1 # 4]>()
        .vector_fp_unary(FpUnaryOp::Sqrt)
        .vector_fp_div_with_mode(FpDivBinaryOp::DivF, BinaryArgMode::Mode10, 1.0f32)
        .vector_widen_pad::<Scalar>()
        .vector_final()
        .to_vrf::<Scalar>(&mut device.sub);
    device
        .main
        .begin(x_dm.view())
        .fetch::<m![K / 8], m![K % 8]>()
        .fetch_cast::<f32>()
        .collect::<m![K / 8], m![K % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![K / 4], m![K % 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, &mean_vrf)
        .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), &inverse_vrf)
        .vector_widen_concat::<m![K / 8], m![K % 8]>()
        .vector_final()
        .cast::<bf16, m![K % 8 # 16]>()
        .commit_trim::<m![K % 8]>()
        .commit::<m![K]>()
        .to_hbm(&mut device.tdma)
}

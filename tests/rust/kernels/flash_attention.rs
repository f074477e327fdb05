use furiosa_opt_std::prelude::*;

axes![T = 256, S = 256, D = 64, E = 64, P = 2];

type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![T];
type Scalar = m![1 # 8];
type Row = m![E];

/// Online softmax over blocks of 64 keys: largest score, sum and weighted values are carried from block to block.
#[device(chip = 1)]
pub fn flash_attention(
    device: &mut Device,
    q: &HbmTensor<bf16, Chip, m![T, D]>,
    k: &HbmTensor<bf16, Chip, m![S, D]>,
    v: &HbmTensor<bf16, Chip, m![E, S]>,
) -> HbmTensor<bf16, Chip, m![T, E]> {
    let q_dm: DmTensor<bf16, Chip, Cluster, Slice, m![D]> = q.to_dm(&mut device.tdma);
    let k_dm: DmTensor<bf16, Chip, Cluster, Slice, m![S, D]> = k.to_dm(&mut device.tdma);
    let v_dm: DmTensor<bf16, Chip, Cluster, Slice, m![E, S]> = v.to_dm(&mut device.tdma);

    let first = scores(device, &q_dm, &k_dm, 0);
    let mut largest = block_largest(device, &first);
    let largest_vrf = staged(device, &largest);
    let mut total = block_total(device, &first, &largest_vrf);
    let first_weights = weights(device, &first, &largest_vrf);
    let mut sum = weighted(device, &first_weights, &v_dm, 0);
    #[unroll]
    for block in 1..S::SIZE / 64 {
        let s = scores(device, &q_dm, &k_dm, block);
        let of_block = block_largest(device, &s);
        let next = pair_max(device, &largest, &of_block);
        let next_vrf = staged(device, &next);
        let correction = difference_exp(device, &largest, &next_vrf);
        let correction_vrf = staged(device, &correction);
        let block_sum = block_total(device, &s, &next_vrf);
        let block_sum_vrf = staged(device, &block_sum);
        total = device
            .main
            .begin(total.view())
            .fetch::<m![1], Scalar>()
            .collect::<m![1], Scalar>()
            .vector_init()
            .vector_intra_slice_tag(TagMode::Zero)
            .vector_narrow_trim::<m![1 # 4]>()
            .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), &correction_vrf)
            .vector_fp_binary(FpBinaryOp::AddF, &block_sum_vrf)
            .vector_widen_pad::<Scalar>()
            .vector_final()
            .commit_trim::<Scalar>()
            .commit::<Scalar>();
        let w = weights(device, &s, &next_vrf);
        let part = weighted(device, &w, &v_dm, block);
        let part_vrf: VrfTensor<f32, Chip, Cluster, Slice, Row> = device
            .sub
            .begin(part.view())
            .fetch::<m![E / 8], m![E % 8]>()
            .collect::<m![E / 8], m![E % 8]>()
            .to_vrf();
        sum = device
            .main
            .begin(sum.view())
            .fetch::<m![E / 8], m![E % 8]>()
            .collect::<m![E / 8], m![E % 8]>()
            .vector_init()
            .vector_intra_slice_tag(TagMode::Zero)
            .vector_narrow_split::<m![E / 4], m![E % 4]>()
            .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), &correction_vrf)
            .vector_fp_binary(FpBinaryOp::AddF, &part_vrf)
            .vector_widen_concat::<m![E / 8], m![E % 8]>()
            .vector_final()
            .commit_trim::<m![E % 8]>()
            .commit::<Row>();
        largest = next;
    }
    let total_vrf = staged(device, &total);
    let out: DmTensor<bf16, Chip, Cluster, Slice, Row> = device
        .main
        .begin(sum.view())
        .fetch::<m![E / 8], m![E % 8]>()
        .collect::<m![E / 8], m![E % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![E / 4], m![E % 4]>()
        .vector_fp_div(FpDivBinaryOp::DivF, &total_vrf)
        .vector_widen_concat::<m![E / 8], m![E % 8]>()
        .vector_final()
        .cast::<bf16, m![E % 8 # 16]>()
        .commit_trim::<m![E % 8]>()
        .commit();
    out.to_hbm(&mut device.tdma)
}

fn scores(
    device: &mut Device,
    q: &DmTensor<bf16, Chip, Cluster, Slice, m![D]>,
    k: &DmTensor<bf16, Chip, Cluster, Slice, m![S, D]>,
    block: usize,
) -> DmTensor<f32, Chip, Cluster, Slice, m![S % 64]> {
    let trf = device
        .sub
        .begin(k.view().tile::<m![S / 64], 1, m![1 # 4, S % 64, D]>(block))
        .fetch::<m![S % 8, S % 64 / 8, D / 16], m![D % 16]>()
        .collect::<m![S % 8, S % 64 / 8, D / 16], m![D % 16]>()
        .to_trf::<m![S % 8], m![S % 64 / 8, D]>();
    device
        .main
        .begin(q.view())
        .fetch::<m![S % 64 / 8, D / 16], m![D % 16]>()
        .collect::<m![S % 64 / 8, D / 16], m![D % 16]>()
        .contract_outer::<m![S % 64 / 8, D / 32], m![D % 32], _, _, _>(&trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![S % 64 / 8]>()
        .contract_lane::<m![S % 64 / 8], m![S % 8]>(LaneMode::Interleaved)
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S % 64 / 4], m![S % 4]>()
        .vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), 0.125f32)
        .vector_widen_concat::<m![S % 64 / 8], m![S % 8]>()
        .vector_final()
        .commit_trim::<m![S % 8]>()
        .commit()
}

fn block_largest(device: &mut Device, s: &DmTensor<f32, Chip, Cluster, Slice, m![S % 64]>) -> DmTensor<f32, Chip, Cluster, Slice, Scalar> {
    device
        .main
        .begin(s.view())
        .fetch::<m![S % 64 / 8], m![S % 8]>()
        .collect::<m![S % 64 / 8], m![S % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S % 64 / 4], m![S % 4]>()
        .vector_intra_slice_reduce::<S, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Max)
        .vector_widen_pad::<Scalar>()
        .vector_final()
        .commit_trim::<Scalar>()
        .commit()
}

fn staged(device: &mut Device, value: &DmTensor<f32, Chip, Cluster, Slice, Scalar>) -> VrfTensor<f32, Chip, Cluster, Slice, Scalar> {
    device.sub.begin(value.view()).fetch::<m![1], Scalar>().collect::<m![1], Scalar>().to_vrf()
}

fn block_total(
    device: &mut Device,
    s: &DmTensor<f32, Chip, Cluster, Slice, m![S % 64]>,
    largest: &VrfTensor<f32, Chip, Cluster, Slice, Scalar>,
) -> DmTensor<f32, Chip, Cluster, Slice, Scalar> {
    device
        .main
        .begin(s.view())
        .fetch::<m![S % 64 / 8], m![S % 8]>()
        .collect::<m![S % 64 / 8], m![S % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S % 64 / 4], m![S % 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, largest)
        .vector_fp_unary(FpUnaryOp::Exp)
        .vector_intra_slice_reduce::<S, m![1], m![1 # 4]>(IntraSliceReduceOpF32::Add)
        .vector_widen_pad::<Scalar>()
        .vector_final()
        .commit_trim::<Scalar>()
        .commit()
}

fn weights(
    device: &mut Device,
    s: &DmTensor<f32, Chip, Cluster, Slice, m![S % 64]>,
    largest: &VrfTensor<f32, Chip, Cluster, Slice, Scalar>,
) -> DmTensor<bf16, Chip, Cluster, Slice, m![S % 64]> {
    device
        .main
        .begin(s.view())
        .fetch::<m![S % 64 / 8], m![S % 8]>()
        .collect::<m![S % 64 / 8], m![S % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![S % 64 / 4], m![S % 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, largest)
        .vector_fp_unary(FpUnaryOp::Exp)
        .vector_widen_concat::<m![S % 64 / 8], m![S % 8]>()
        .vector_final()
        .cast::<bf16, m![S % 8 # 16]>()
        .commit_trim::<m![S % 8]>()
        .commit()
}

fn weighted(
    device: &mut Device,
    w: &DmTensor<bf16, Chip, Cluster, Slice, m![S % 64]>,
    v: &DmTensor<bf16, Chip, Cluster, Slice, m![E, S]>,
    block: usize,
) -> DmTensor<f32, Chip, Cluster, Slice, Row> {
    let trf = device
        .sub
        .begin(v.view().tile::<m![S / 64], 1, m![E, 1 # 4, S % 64]>(block))
        .fetch::<m![E % 8, E / 8, S % 64 / 16], m![S % 16]>()
        .collect::<m![E % 8, E / 8, S % 64 / 16], m![S % 16]>()
        .to_trf::<m![E % 8], m![E / 8, S % 64]>();
    device
        .main
        .begin(w.view())
        .fetch::<m![E / 8, S % 64 / 16], m![S % 16]>()
        .collect::<m![E / 8, S % 64 / 16], m![S % 16]>()
        .contract_outer::<m![E / 8, S % 64 / 32], m![S % 32], _, _, _>(&trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![E / 8]>()
        .contract_lane::<m![E / 8], m![E % 8]>(LaneMode::Interleaved)
        .commit_trim::<m![E % 8]>()
        .commit()
}

fn pair_max(
    device: &mut Device,
    a: &DmTensor<f32, Chip, Cluster, Slice, Scalar>,
    b: &DmTensor<f32, Chip, Cluster, Slice, Scalar>,
) -> DmTensor<f32, Chip, Cluster, Slice, Scalar> {
    device
        .main
        .begin_interleaved::<P, _, _, _, _, _>(a.view(), b.view())
        .fetch::<m![P], Scalar>()
        .collect::<m![P], Scalar>()
        .vector_init()
        .vector_intra_slice_unzip::<P, m![1]>()
        .vector_clip_zip(ClipBinaryOpF32::Max)
        .vector_final()
        .commit_trim::<Scalar>()
        .commit()
}

fn difference_exp(
    device: &mut Device,
    old: &DmTensor<f32, Chip, Cluster, Slice, Scalar>,
    new: &VrfTensor<f32, Chip, Cluster, Slice, Scalar>,
) -> DmTensor<f32, Chip, Cluster, Slice, Scalar> {
    device
        .main
        .begin(old.view())
        .fetch::<m![1], Scalar>()
        .collect::<m![1], Scalar>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_trim::<m![1 # 4]>()
        .vector_fp_binary(FpBinaryOp::SubF, new)
        .vector_fp_unary(FpUnaryOp::Exp)
        .vector_widen_pad::<Scalar>()
        .vector_final()
        .commit_trim::<Scalar>()
        .commit()
}

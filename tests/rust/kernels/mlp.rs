use furiosa_opt_std::prelude::*;

axes![B = 8, X = 256, H = 256, C = 256];

type Chip = m![1];
type Cluster = m![1 # 2];

/// Two layers with bias, ReLU after the first; weights one row a slice, activations of eight samples in the lanes.
#[device(chip = 1)]
pub fn mlp(
    device: &mut Device,
    input: &HbmTensor<bf16, Chip, m![B, X]>,
    w1: &HbmTensor<bf16, Chip, m![H, X]>,
    b1: &HbmTensor<f32, Chip, m![H, 1 # 8]>,
    w2: &HbmTensor<bf16, Chip, m![C, H]>,
    b2: &HbmTensor<f32, Chip, m![C, 1 # 8]>,
) -> HbmTensor<f32, Chip, m![C, B]> {
    let x: DmTensor<bf16, Chip, Cluster, m![H], m![B, X]> = input.to_dm(&mut device.tdma);
    let w: DmTensor<bf16, Chip, Cluster, m![H], m![X]> = w1.to_dm(&mut device.tdma);
    let bias: DmTensor<f32, Chip, Cluster, m![H], m![1 # 8]> = b1.to_dm(&mut device.tdma);
    let bias_vrf: VrfTensor<f32, Chip, Cluster, m![H], m![1 # 8]> =
        device.sub.begin(bias.view()).fetch::<m![1], m![1 # 8]>().collect::<m![1], m![1 # 8]>().to_vrf();
    let x_trf = device
        .sub
        .begin(x.view())
        .fetch::<m![B, X / 16], m![X % 16]>()
        .collect::<m![B, X / 16], m![X % 16]>()
        .to_trf::<m![B], m![X]>();
    let hidden: DmTensor<bf16, Chip, Cluster, m![H], m![B]> = device
        .main
        .begin(w.view())
        .fetch::<m![X / 16], m![X % 16]>()
        .collect::<m![X / 16], m![X % 16]>()
        .contract_outer::<m![X / 32], m![X % 32], _, _, _>(&x_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![1]>()
        .contract_lane::<m![1], m![B]>(LaneMode::Interleaved)
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![B / 4], m![B % 4]>()
        .vector_fp_binary(FpBinaryOp::AddF, &bias_vrf)
        .vector_widen_concat::<m![1], m![B]>()
        .vector_clip(ClipBinaryOpF32::Max, 0.0f32)
        .vector_final()
        .cast::<bf16, m![B # 16]>()
        .commit_trim::<m![B]>()
        .commit();
    // through HBM, so that every slice gets all hidden values
    let hidden_hbm: HbmTensor<bf16, Chip, m![H, B]> = hidden.to_hbm(&mut device.tdma);
    let all: DmTensor<bf16, Chip, Cluster, m![C], m![H, B]> = hidden_hbm.to_dm(&mut device.tdma);
    let v: DmTensor<bf16, Chip, Cluster, m![C], m![H]> = w2.to_dm(&mut device.tdma);
    let turned: DmTensor<bf16, Chip, Cluster, m![C], m![B, H]> = device
        .main
        .begin(all.view())
        .fetch::<m![H], m![B]>()
        .collect::<m![H], m![B # 16]>()
        .transpose::<m![H / 4, B], m![H % 4 # 16]>()
        .commit_trim::<m![H % 4]>()
        .commit();
    let all_trf = device
        .sub
        .begin(turned.view())
        .fetch::<m![B, H / 16], m![H % 16]>()
        .collect::<m![B, H / 16], m![H % 16]>()
        .to_trf::<m![B], m![H]>();
    let bias2: DmTensor<f32, Chip, Cluster, m![C], m![1 # 8]> = b2.to_dm(&mut device.tdma);
    let bias2_vrf: VrfTensor<f32, Chip, Cluster, m![C], m![1 # 8]> =
        device.sub.begin(bias2.view()).fetch::<m![1], m![1 # 8]>().collect::<m![1], m![1 # 8]>().to_vrf();
    let logits: DmTensor<f32, Chip, Cluster, m![C], m![B]> = device
        .main
        .begin(v.view())
        .fetch::<m![H / 16], m![H % 16]>()
        .collect::<m![H / 16], m![H % 16]>()
        .contract_outer::<m![H / 32], m![H % 32], _, _, _>(&all_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![1]>()
        .contract_lane::<m![1], m![B]>(LaneMode::Interleaved)
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![B / 4], m![B % 4]>()
        .vector_fp_binary(FpBinaryOp::AddF, &bias2_vrf)
        .vector_widen_concat::<m![1], m![B]>()
        .vector_final()
        .commit_trim::<m![B]>()
        .commit();
    logits.to_hbm(&mut device.tdma)
}

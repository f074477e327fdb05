//! tcptune oracle: maximum a ->
//! tcptune tolerance: form=exact
use furiosa_opt_std::prelude::*;

axes![A = 8192];

/// The largest of 8,192 integers: inside the slices, then over them.
#[device(chip = 1)]
pub fn reduce_max(device: &mut Device, x: &HbmTensor<i32, m![1], m![A]>) -> HbmTensor<i32, m![1], m![1]> {
    let dm: DmTensor<i32, m![1], m![1 # 2], m![A / 32], m![A % 32]> = x.to_dm(&mut device.tdma);
    let top: DmTensor<i32, m![1], m![1 # 2], m![1 # 256], m![1 # 8]> = device
        .main
        .begin(dm.view())
        .fetch::<m![A % 32 / 8], m![A % 8]>()
        .collect::<m![A % 32 / 8], m![A % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_narrow_split::<m![A % 32 / 4], m![A % 4]>()
        .vector_intra_slice_reduce::<A, m![1], m![1 # 4]>(IntraSliceReduceOpI32::Max)
        .vector_widen_pad::<m![1 # 8]>()
        .vector_inter_slice_reduce::<m![1 # 256], m![1]>(InterSliceReduceOpI32::Max)
        .vector_final()
        .commit_trim::<m![1 # 8]>()
        .commit();
    top.to_hbm(&mut device.tdma)
}

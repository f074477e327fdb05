//! tcptune oracle: permute sab -> sba
//! tcptune tolerance: form=exact
use furiosa_opt_std::prelude::*;

axes![S = 256, A = 8, B = 16];

/// Every slice turns its block of 8 x 16 bytes by the Transpose Engine.
#[device(chip = 1)]
pub fn transpose_engine(device: &mut Device, x: &HbmTensor<i8, m![1], m![S, A, B]>) -> HbmTensor<i8, m![1], m![S, B, A]> {
    let dm: DmTensor<i8, m![1], m![1 # 2], m![S], m![A, B]> = x.to_dm(&mut device.tdma);
    let turned: DmTensor<i8, m![1], m![1 # 2], m![S], m![B, A]> = device
        .main
        .begin(dm.view())
        .fetch::<m![A], m![B]>()
        .collect::<m![A], m![B # 32]>()
        .transpose::<m![B], m![A # 32]>()
        .commit_trim::<m![A]>()
        .commit();
    turned.to_hbm(&mut device.tdma)
}

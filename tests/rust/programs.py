"""Small Rust kernels written for these tests."""

DOT = """\
use furiosa_opt_std::prelude::*;

axes![A = 2048];

pub type Chip = m![1];
pub type Cluster = m![1 # 2];
pub type Slice = m![1 # 256];

#[device(chip = 1)]
pub fn dot_kernel(
    device: &mut Device,
    x: &HbmTensor<bf16, Chip, m![A]>,
    y: &HbmTensor<bf16, Chip, m![A]>,
) -> HbmTensor<bf16, Chip, m![1]> {
    let x_dm = x.to_dm::<Cluster, Slice, m![A]>(&mut device.tdma);
    let y_dm = y.to_dm::<Cluster, Slice, m![A]>(&mut device.tdma);
    let y_trf = device
        .sub
        .begin(y_dm.view())
        .fetch::<m![1], m![A]>()
        .collect::<m![A / 16], m![A % 16]>()
        .to_trf::<m![1], m![A]>();
    let result = device
        .main
        .begin(x_dm.view())
        .fetch::<m![1], m![A]>()
        .collect::<m![A / 16], m![A % 16]>()
        .contract_outer::<m![A / 32], m![A % 32], _, _, _>(&y_trf)
        .contract_packet::<m![1]>()
        .contract_time::<m![1]>()
        .contract_lane::<m![1], m![1 # 8]>(LaneMode::Interleaved)
        .cast::<bf16, m![1 # 16]>()
        .commit_trim::<m![1 # 8]>()
        .commit::<m![1 # 8]>();
    result.to_hbm(&mut device.tdma)
}
"""

COLLECTIVE_HELPERS = """\
/// Chip `i` keeps shard `i` of the sum over all chips.
fn reduce_scatter_dm(
    device: &mut Device,
    full: &DmTensor<i32, m![A], m![1 # 2], m![1 # 256], m![B, C, D]>,
) -> DmTensor<i32, m![A], m![1 # 2], m![1 # 256], m![C, D]> {
    let round0 = full.chip_shuffle([0, 1, 2, 3]).chip_slice::<m![B], m![C, D]>([0, 1, 2, 3]).to_dm::<m![C, D]>(&mut device.tdma);
    let round1 = full.chip_shuffle([1, 2, 3, 0]).chip_slice::<m![B], m![C, D]>([0, 1, 2, 3]).to_dm::<m![C, D]>(&mut device.tdma);
    let round2 = full.chip_shuffle([2, 3, 0, 1]).chip_slice::<m![B], m![C, D]>([0, 1, 2, 3]).to_dm::<m![C, D]>(&mut device.tdma);
    let round3 = full.chip_shuffle([3, 0, 1, 2]).chip_slice::<m![B], m![C, D]>([0, 1, 2, 3]).to_dm::<m![C, D]>(&mut device.tdma);
    let mut sum01 = DmTensor::new();
    let mut sum012 = DmTensor::new();
    let mut sum = DmTensor::new();
    add_pair(device, &round0, &round1, &mut sum01);
    add_pair(device, &round2, &sum01, &mut sum012);
    add_pair(device, &round3, &sum012, &mut sum);
    sum
}

fn all_gather_dm<Chip: M, Out: M>(
    dma: &mut DmaContext<{ Dma::Tensor }>,
    shard: &DmTensor<i32, Chip, m![1 # 2], m![1 # 256], m![C, D]>,
) -> DmTensor<i32, m![4], m![1 # 2], m![1 # 256], Out> {
    shard.to_dm(dma)
}
"""
"""Bodies for the helpers that the chip collectives of the manual call and do not print."""

CLUSTER_HELPERS = """\
fn reduce_scatter_dm(
    device: &mut Device,
    full: &DmTensor<i32, m![1], m![A], m![1 # 256], m![B, C, D]>,
) -> DmTensor<i32, m![1], m![A], m![1 # 256], m![C, D]> {
    let local = full.cluster_slice::<m![B], m![C, D]>([0, 1]).to_dm::<m![C, D]>(&mut device.tdma);
    let remote = full.cluster_swap().cluster_slice::<m![B], m![C, D]>([0, 1]).to_dm::<m![C, D]>(&mut device.tdma);
    let mut sum: DmTensor<i32, m![1], m![A], m![1 # 256], m![C, D]> = DmTensor::new();
    add_pair(device, &local, &remote, &mut sum);
    sum
}

fn all_gather_dm<Cluster: M, Out: M>(
    dma: &mut DmaContext<{ Dma::Tensor }>,
    shard: &DmTensor<i32, m![1], Cluster, m![1 # 256], m![C, D]>,
) -> DmTensor<i32, m![1], m![2], m![1 # 256], Out> {
    shard.to_dm(dma)
}
"""

//! Launches of CubeK's kernels.

use super::algorithm::{MatmulAlgorithm, elems};
use super::perturbed::{Perturbed, PerturbedArgs, PerturbedMapArgs, PerturbedParts};
use crate::backend::cube::launch::empty;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::features::{Tma, TypeUsage};
use cubecl::std::tensor::{MatrixBatchLayout, matrix_batch_layout};
use cubek::matmul::definition::{
    AvailableVectorSizes, MatmulAvailabilityError, MatmulElems, MatmulProblem, MatmulSetupError, MatmulVectorSizes,
};
use cubek::matmul::launch::launch_ref;
use cubek::matmul::multi_level::args::{ConcreteInputsFactory, ConcreteOutputFactory, InputArg, OutputArg, TensorArgs};
use cubek::matmul::multi_level::components::tile::TileMatmulKind;
use cubek::matmul::multi_level::routines::batch::ordered_double_buffering::{
    OrderedDoubleBufferingAlgorithm, OrderedSelectionArgs,
};
use cubek::matmul::multi_level::routines::batch::simple::SimpleAlgorithm;
use cubek::matmul::multi_level::routines::batch::simple_unit::SimpleUnitAlgorithm;
use cubek::matmul::multi_level::routines::batch::specialized::{SpecializedAlgorithm, SpecializedStrategy};
use cubek::matmul::multi_level::{BatchMatmulRoutine, Strategy, launch_kernel};
use cubek::matmul::routine::BlueprintStrategy;
use cubek::std::InputBinding;

/// Two stages of a fixed size, for any number of rows: 64 or 128 rows, by the shape of the instruction.
pub(super) fn two_stages() -> BlueprintStrategy<(), OrderedDoubleBufferingAlgorithm> {
    BlueprintStrategy::Inferred(OrderedSelectionArgs {
        tile_matmul: TileMatmulKind::Cmma,
        partition_k: Some(2),
        row_count: Some(8),
        rows_per_plane: Some(2),
    })
}

/// `lhs · rhs`, or why this way cannot compute it.
pub(super) fn product(
    lhs: CubeTensor,
    rhs: CubeTensor,
    out: DType,
    way: MatmulAlgorithm,
) -> Result<CubeTensor, MatmulSetupError> {
    let strategy = match way {
        MatmulAlgorithm::TensorMaps if !takes_tensor_maps(&lhs, &rhs) => return Err(refused()),
        MatmulAlgorithm::TensorMaps => Strategy::SpecializedTmaMma(BlueprintStrategy::default()),
        MatmulAlgorithm::TwoStages => Strategy::OrderedDoubleCmma(two_stages()),
        MatmulAlgorithm::OneStage => Strategy::SimpleCyclicCmma(BlueprintStrategy::default()),
        MatmulAlgorithm::Units => Strategy::SimpleUnit(BlueprintStrategy::default()),
        MatmulAlgorithm::Naive => Strategy::Naive,
    };
    by_strategy(lhs, rhs, out, strategy)
}

/// The same by any of CubeK's kernels.
pub(super) fn by_strategy(
    lhs: CubeTensor,
    rhs: CubeTensor,
    out: DType,
    strategy: Strategy,
) -> Result<CubeTensor, MatmulSetupError> {
    let (mut shape, last) = (lhs.meta.shape().clone(), lhs.meta.shape().num_dims() - 1);
    shape[last] = rhs.meta.shape()[last];
    let product = empty_device_contiguous_dtype(lhs.client.clone(), lhs.device.clone(), shape, out);
    let (client, mut elems) = (lhs.client.clone(), elems(lhs.dtype, out));
    let (lhs, rhs) = (binding(lhs), binding(rhs));
    launch_ref(&strategy.into(), &client, lhs, rhs, product.clone().binding(), &mut elems)?;
    Ok(product)
}

/// `lhs · rhs` and what is added to it where it is written, or why this way cannot compute it.
pub(super) fn perturbed(
    lhs: CubeTensor,
    rhs: CubeTensor,
    parts: &PerturbedParts,
    way: MatmulAlgorithm,
) -> Result<CubeTensor, MatmulSetupError> {
    match way {
        MatmulAlgorithm::TensorMaps if !takes_tensor_maps(&lhs, &rhs) => Err(refused()),
        MatmulAlgorithm::TensorMaps => by_routine::<PerturbedMapArgs, _>(lhs, rhs, parts, &tensor_maps()),
        MatmulAlgorithm::TwoStages => by_routine::<PerturbedArgs, _>(lhs, rhs, parts, &two_stages()),
        MatmulAlgorithm::OneStage => {
            let strategy = BlueprintStrategy::<(), SimpleAlgorithm>::default();
            by_routine::<PerturbedArgs, _>(lhs, rhs, parts, &strategy)
        }
        MatmulAlgorithm::Units => {
            let strategy = BlueprintStrategy::<(), SimpleUnitAlgorithm>::default();
            by_routine::<PerturbedArgs, _>(lhs, rhs, parts, &strategy)
        }
        MatmulAlgorithm::Naive => Err(MatmulSetupError::InvalidConfig(Box::new("written by elements, not by vectors"))),
    }
}

/// Whether a device has tensor maps and single tensor-core instructions for the types, and they can read the factors.
fn takes_tensor_maps(lhs: &CubeTensor, rhs: &CubeTensor) -> bool {
    let elems = elems(lhs.dtype, lhs.dtype);
    let (factor, other, sum) = (elems.lhs_register, elems.rhs_register, elems.acc_register);
    let aligned = |tensor: &CubeTensor| {
        let strides = tensor.meta.strides();
        let last = strides.len() - 1;
        // Rows after rows of 16-byte units.
        strides[last] == 1 && strides[..last].iter().all(|stride| (stride * tensor.dtype.size()).is_multiple_of(16))
    };
    lhs.dtype.size() == 2
        && lhs.client.properties().features.tma.contains(Tma::Base)
        && !TileMatmulKind::Mma.supported_sizes(&lhs.client, factor, other, sum).is_empty()
        && aligned(lhs)
        && aligned(rhs)
}

fn refused() -> MatmulSetupError {
    MatmulSetupError::Unavailable(MatmulAvailabilityError::TmaUnavailable)
}

fn tensor_maps() -> BlueprintStrategy<(), SpecializedAlgorithm> {
    BlueprintStrategy::Inferred(SpecializedStrategy { tile_matmul: TileMatmulKind::Mma })
}

fn by_routine<P: Perturbed, A: BatchMatmulRoutine<()>>(
    lhs: CubeTensor,
    rhs: CubeTensor,
    parts: &PerturbedParts,
    strategy: &BlueprintStrategy<(), A>,
) -> Result<CubeTensor, MatmulSetupError>
where
    InputArg<P>: ConcreteInputsFactory<A>,
{
    let (lhs, rhs) = (readable(lhs), readable(rhs));
    let y = empty(&lhs, [lhs.meta.shape()[0], rhs.meta.shape()[1]], lhs.dtype);
    let (client, elems) = (lhs.client.clone(), elems(lhs.dtype, lhs.dtype));
    let problem = problem(&lhs, &rhs, &y, parts, &elems)?;
    let settings = A::device_settings(&client, vector_sizes::<P>(&lhs, &problem)?);
    let expanded = A::expand_blueprint(&problem, &settings, strategy)?;
    let info = A::prepare(&problem, &settings, expanded)?;
    let (blueprint, sizes) = (&info.blueprint, &info.vector_sizes);
    let input = <InputArg<P> as ConcreteInputsFactory<A>>::create;
    let input = input(binding(lhs), binding(rhs), blueprint, &problem, sizes, &info.dtypes);
    let output = <OutputArg<TensorArgs> as ConcreteOutputFactory<A>>::create;
    let output = output(y.clone().binding(), blueprint, &problem, sizes, &info.dtypes);
    launch_kernel::<P, A>(&client, input, P::output(parts, output), (), info)?;
    Ok(y)
}

/// What is multiplied, and where it is.
fn problem(
    lhs: &CubeTensor,
    rhs: &CubeTensor,
    y: &CubeTensor,
    parts: &PerturbedParts,
    elems: &MatmulElems,
) -> Result<MatmulProblem, MatmulSetupError> {
    let usage = lhs.client.properties().type_usage(elems.lhs_global);
    if !usage.contains(TypeUsage::Conversion) {
        let (lhs, rhs, output) = (elems.lhs_global, elems.rhs_global, elems.acc_global);
        return Err(MatmulAvailabilityError::TypesUnavailable { lhs, rhs, output }.into());
    }
    let addresses = [lhs, rhs, y].map(CubeTensor::required_address_type);
    MatmulProblem::from_shapes_and_strides(
        lhs.meta.shape().clone(),
        rhs.meta.shape().clone(),
        y.meta.shape().clone(),
        lhs.meta.strides().clone(),
        rhs.meta.strides().clone(),
        y.meta.strides().clone(),
        elems.as_global_elems(),
        addresses.into_iter().fold(parts.required_address_type(), Ord::max),
        None,
        None,
    )
}

/// The widest loads and stores that shapes and strides allow.
fn vector_sizes<P: Perturbed>(
    lhs: &CubeTensor,
    problem: &MatmulProblem,
) -> Result<MatmulVectorSizes, MatmulSetupError> {
    let size = lhs.dtype.size();
    let available = match P::BY_TENSOR_MAPS {
        true => AvailableVectorSizes::from_type_size_tma(&lhs.client, size),
        false => AvailableVectorSizes::from_type_sizes(&lhs.client, size, size, size),
    };
    available
        .filter_lhs_with_tensor(&problem.lhs_strides, &problem.lhs_shape, problem.lhs_layout)
        .filter_rhs_with_tensor(&problem.rhs_strides, &problem.rhs_shape, problem.rhs_layout)
        .filter_out_with_tensor(&problem.out_strides, &problem.out_shape)
        .pick_max()
}

/// Rows after rows, or columns after columns: kernels read no other order.
fn readable(tensor: CubeTensor) -> CubeTensor {
    match matrix_batch_layout(tensor.meta.strides(), None) {
        MatrixBatchLayout::HighlyPermuted => into_contiguous(tensor),
        MatrixBatchLayout::Contiguous | MatrixBatchLayout::MildlyPermuted { .. } => tensor,
    }
}

fn binding(tensor: CubeTensor) -> InputBinding {
    let elem = dtype_to_elem_type(tensor.dtype);
    InputBinding::new(tensor.binding(), elem)
}

//! What a perturbed linear operation adds to the product `x·W` where the product is written: the low-rank part and the bias. The
//! product by itself never goes to memory.

use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::{AddressType, VectorSize};
use cubecl::prelude::barrier::BarrierExpand;
use cubecl::prelude::*;
use cubecl::std::FastDivmod;
use cubecl::std::tensor::launch::ViewArg;
use cubecl::std::tensor::layout::Coords1d;
use cubecl::std::tensor::layout::plain::PlainLayout;
use cubecl::std::tensor::{View, ViewMut, ViewMutExpand, ViewOperationsExpand, ViewOperationsMutExpand};
use cubek::matmul::multi_level::args::{
    BatchedCoords, MatmulArgs, OutputRuntimeArg, TensorArgs, TensorInputs, TensorMapArgs, TensorMapInputs, TensorOutput,
};
use cubek::matmul::multi_level::components::global::memory::GlobalLayoutConfig;

/// What is added to a product, as a launch needs it.
pub(crate) struct PerturbedParts {
    /// `[rows, depth]`: what each row of the product takes of each factor of its pair, sign and scale included.
    pub t: CubeTensor,
    /// `[pairs · depth, columns]`.
    pub factors: CubeTensor,
    /// `[columns]`.
    pub bias: Option<CubeTensor>,
    /// Rows of the product that belong to one pair.
    pub pair_rows: usize,
    /// Factors of a pair.
    pub depth: usize,
}

impl PerturbedParts {
    pub(super) fn required_address_type(&self) -> AddressType {
        self.t.required_address_type().max(self.factors.required_address_type())
    }

    /// The output of a kernel, given where it is written.
    fn argument(&self, plain: OutputRuntimeArg<TensorArgs>) -> OutputRuntimeArg<PerturbedArgs> {
        let view = |tensor: &CubeTensor| ViewArg::new_array::<PlainLayout>(tensor.clone().into_buffer_arg(), ());
        let columns = self.factors.meta.shape()[1];
        PerturbedOutputLaunch::new(
            plain,
            view(&self.t),
            view(&self.factors),
            view(self.bias.as_ref().unwrap_or(&self.factors)),
            self.pair_rows as u32,
            columns as u32,
            self.depth,
            self.bias.is_some(),
        )
    }
}

/// Where the output is written, and what is added to it.
#[derive(CubeType, CubeLaunch, Clone)]
#[expand(derive(Clone))]
pub(crate) struct PerturbedOutput<EO: CubePrimitive> {
    plain: TensorOutput<EO>,
    t: View<'static, f32, Coords1d>,
    factors: View<'static, EO, Coords1d>,
    bias: View<'static, EO, Coords1d>,
    pair_rows: FastDivmod<u32>,
    columns: u32,
    #[cube(comptime)]
    depth: usize,
    #[cube(comptime)]
    has_bias: bool,
}

/// The product's value at a place of the output, and what is added to it there.
#[cube]
fn perturbed<EO: CubePrimitive>(output: &PerturbedOutput<EO>, row: u32, column: u32, product: EO) -> EO {
    let width = output.factors.vector_size();
    let mut sum = Vector::<f32, EO::Size>::cast_from(product);
    if comptime!(output.has_bias) {
        sum += Vector::<f32, EO::Size>::cast_from(output.bias.read(column as usize / width));
    }
    let pair = output.pair_rows.div(row);
    #[unroll]
    for k in 0..output.depth {
        let t = output.t.read(row as usize * output.depth + k);
        let factor = (pair as usize * output.depth + k) * output.columns as usize + column as usize;
        sum += Vector::new(t) * Vector::<f32, EO::Size>::cast_from(output.factors.read(factor / width));
    }
    EO::cast_from(sum)
}

/// A view of the output that adds at every write.
#[cube]
fn perturbed_view<'a, EO: CubePrimitive>(
    y: ViewMut<'a, EO, BatchedCoords>,
    output: &PerturbedOutput<EO>,
) -> ViewMut<'a, EO, BatchedCoords> {
    intrinsic!(|scope| ViewMutExpand::new(scope, PerturbedView { y, output: output.clone() }))
}

/// Arguments of kernels with a perturbed output.
pub(super) trait Perturbed: MatmulArgs<Config = ()> {
    /// Whether factors are copied by tensor maps, which read no vectors.
    const BY_TENSOR_MAPS: bool;

    /// The output, given where it is written.
    fn output(parts: &PerturbedParts, plain: OutputRuntimeArg<TensorArgs>) -> OutputRuntimeArg<Self>;
}

/// The arguments of a kernel: CubeK's own, but for the output.
macro_rules! perturbed_args {
    ($(#[$doc:meta])* $name:ident: $args:ident, $inputs:ident, by tensor maps: $by_tensor_maps:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(crate) struct $name;

        impl Perturbed for $name {
            const BY_TENSOR_MAPS: bool = $by_tensor_maps;

            fn output(parts: &PerturbedParts, plain: OutputRuntimeArg<TensorArgs>) -> OutputRuntimeArg<Self> {
                parts.argument(plain)
            }
        }

        #[cube]
        impl MatmulArgs for $name {
            type Input<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive> = $inputs<Lhs, Rhs, EO>;
            type Output<EO: CubePrimitive> = PerturbedOutput<EO>;
            type Config = ();
            type State<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive> =
                (($inputs<Lhs, Rhs, EO>, TensorOutput<EO>, ()), PerturbedOutput<EO>);

            fn init_state<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                input: &Self::Input<Lhs, Rhs, EO>,
                output: &mut Self::Output<EO>,
                config: (),
                #[comptime] _lhs_layout_config: GlobalLayoutConfig,
                #[comptime] _rhs_layout_config: GlobalLayoutConfig,
                #[comptime] _out_layout_config: GlobalLayoutConfig,
            ) -> Self::State<Lhs, Rhs, EO> {
                ((input.clone(), output.plain.clone(), config), output.clone())
            }

            fn view_lhs<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
            ) -> View<'_, Lhs, BatchedCoords> {
                $args::<()>::view_lhs::<Lhs, Rhs, EO>(&state.0)
            }

            fn batch_lhs<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
                batch: usize,
            ) -> usize {
                $args::<()>::batch_lhs::<Lhs, Rhs, EO>(&state.0, batch)
            }

            fn view_rhs<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
            ) -> View<'_, Rhs, BatchedCoords> {
                $args::<()>::view_rhs::<Lhs, Rhs, EO>(&state.0)
            }

            fn batch_rhs<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
                batch: usize,
            ) -> usize {
                $args::<()>::batch_rhs::<Lhs, Rhs, EO>(&state.0, batch)
            }

            fn view_acc<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
            ) -> ComptimeOption<View<'_, EO, BatchedCoords>> {
                $args::<()>::view_acc::<Lhs, Rhs, EO>(&state.0)
            }

            fn batch_acc<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
                batch: usize,
            ) -> usize {
                $args::<()>::batch_acc::<Lhs, Rhs, EO>(&state.0, batch)
            }

            fn view_out<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
            ) -> ViewMut<'_, EO, BatchedCoords> {
                let y = $args::<()>::view_out::<Lhs, Rhs, EO>(&state.0);
                perturbed_view::<EO>(y, &state.1)
            }

            fn batch_out<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(
                state: &Self::State<Lhs, Rhs, EO>,
                batch: usize,
            ) -> usize {
                $args::<()>::batch_out::<Lhs, Rhs, EO>(&state.0, batch)
            }

            fn runtime_config<Lhs: CubePrimitive, Rhs: CubePrimitive, EO: CubePrimitive>(_state: &Self::State<Lhs, Rhs, EO>) {}
        }
    };
}

perturbed_args! {
    /// Factors are read by their strides.
    PerturbedArgs: TensorArgs, TensorInputs, by tensor maps: false
}
perturbed_args! {
    /// Factors are copied by tensor maps.
    PerturbedMapArgs: TensorMapArgs, TensorMapInputs, by tensor maps: true
}

/// Where kernels write `y`, while they are built.
struct PerturbedView<'a, EO: CubePrimitive> {
    y: ViewMutExpand<'a, EO, BatchedCoords>,
    output: PerturbedOutputExpand<EO>,
}

type Coordinates = (NativeExpand<usize>, NativeExpand<u32>, NativeExpand<u32>);

impl<EO: CubePrimitive> PerturbedView<'_, EO> {
    fn perturbed(&self, scope: &Scope, (_, row, column): &Coordinates, product: NativeExpand<EO>) -> NativeExpand<EO> {
        perturbed::expand(scope, &self.output, *row, *column, product)
    }
}

impl<EO: CubePrimitive> ViewOperationsMutExpand<EO, BatchedCoords> for PerturbedView<'_, EO> {
    fn __expand_write_method(&self, scope: &Scope, at: Coordinates, value: NativeExpand<EO>) {
        let value = self.perturbed(scope, &at, value);
        self.y.__expand_write_method(scope, at, value);
    }

    fn __expand_write_checked_method(&self, scope: &Scope, at: Coordinates, value: NativeExpand<EO>) {
        // Outside there is nothing to read either.
        let inside = ViewOperationsExpand::__expand_is_in_bounds_method(&self.y, scope, at);
        if_expand(scope, inside, |scope| self.__expand_write_method(scope, at, value));
    }

    fn __expand_as_linear_slice_mut_method(&self, _: &Scope, _: Coordinates, _: Coordinates) -> &mut SliceExpand<EO> {
        panic!("a perturbed product is written by vectors, not by slices")
    }

    fn __expand_tensor_map_store_method(&self, _: &Scope, _: &SliceExpand<EO>, _: Coordinates) {
        panic!("a perturbed product is written by vectors, not by tensor maps")
    }
}

/// Reading gives what has been written.
impl<EO: CubePrimitive> ViewOperationsExpand<EO, BatchedCoords> for PerturbedView<'_, EO> {
    fn __expand_read_method(&self, scope: &Scope, at: Coordinates) -> NativeExpand<EO> {
        ViewOperationsExpand::__expand_read_method(&self.y, scope, at)
    }

    fn __expand_read_checked_method(&self, scope: &Scope, at: Coordinates) -> NativeExpand<EO> {
        ViewOperationsExpand::__expand_read_checked_method(&self.y, scope, at)
    }

    fn __expand_read_masked_method(&self, scope: &Scope, at: Coordinates, mask: NativeExpand<EO>) -> NativeExpand<EO> {
        ViewOperationsExpand::__expand_read_masked_method(&self.y, scope, at, mask)
    }

    fn __expand_read_unchecked_method(&self, scope: &Scope, at: Coordinates) -> NativeExpand<EO> {
        ViewOperationsExpand::__expand_read_unchecked_method(&self.y, scope, at)
    }

    fn __expand_as_linear_slice_method(&self, scope: &Scope, at: Coordinates, size: Coordinates) -> &SliceExpand<EO> {
        ViewOperationsExpand::__expand_as_linear_slice_method(&self.y, scope, at, size)
    }

    fn __expand_tensor_map_load_method(
        &self,
        scope: &Scope,
        barrier: &BarrierExpand,
        shared: &mut SliceExpand<EO>,
        at: Coordinates,
    ) {
        ViewOperationsExpand::__expand_tensor_map_load_method(&self.y, scope, barrier, shared, at);
    }

    fn __expand_shape_method(&self, scope: &Scope) -> Coordinates {
        ViewOperationsExpand::__expand_shape_method(&self.y, scope)
    }

    fn __expand_is_in_bounds_method(&self, scope: &Scope, at: Coordinates) -> NativeExpand<bool> {
        ViewOperationsExpand::__expand_is_in_bounds_method(&self.y, scope, at)
    }
}

impl<EO: CubePrimitive> VectorizedExpand for PerturbedView<'_, EO> {
    fn __expand_vector_size_method(&self, scope: &Scope) -> VectorSize {
        self.y.__expand_vector_size_method(scope)
    }
}

//! The launches that find an orthonormal basis of rows: one for few rows, else six for each panel behind the first.

use super::geometry::{BasisTile, OVERLAPS, PANEL, UNITS, cube_count};
use super::launch::empty;
use super::row_projection::{PanelLaunch, Stage, panel_kernel, panel_overlaps_kernel, take_panels_kernel};
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;

/// An orthonormal basis of the rows of `x`, `[rows, d_input]`, with zeros for dependent rows.
pub(crate) fn row_basis(x: CubeTensor, tile: BasisTile) -> CubeTensor {
    let [rows, width] = [x.meta.shape()[0], x.meta.shape()[1]];
    let each = BasisTile::panel_rows(rows);
    let of = Basis { basis: empty(&x, [rows, width], DType::F32), x, tile, each };
    of.make_orthonormal(0, Stage::Alone);
    if each < rows {
        let overlaps = empty(&of.x, [rows, PANEL], DType::F32);
        for first in (each..rows).step_by(each) {
            for stage in [Stage::First, Stage::Second] {
                of.find_overlaps(&overlaps, first, stage);
                of.take_overlaps(&overlaps, first, stage);
                of.make_orthonormal(first, stage);
            }
        }
    }
    of.basis
}

struct Basis {
    x: CubeTensor,
    basis: CubeTensor,
    tile: BasisTile,
    /// Rows of a panel.
    each: usize,
}

impl Basis {
    fn panel(&self, first: usize) -> PanelLaunch {
        let [rows, width] = [self.x.meta.shape()[0], self.x.meta.shape()[1]];
        let strides = self.x.meta.strides();
        PanelLaunch::new(first, self.each.min(rows - first), width, strides[0], strides[1])
    }

    fn make_orthonormal(&self, first: usize, stage: Stage) {
        panel_kernel::launch(
            &self.x.client,
            cube_count(&self.x.client, 1),
            self.tile.cube_dim(),
            self.x.clone().into_buffer_arg(),
            self.basis.clone().into_buffer_arg(),
            self.panel(first),
            stage,
            self.tile,
            dtype_to_elem_type(self.x.dtype),
        );
        counters::add_kernel();
    }

    fn find_overlaps(&self, overlaps: &CubeTensor, first: usize, stage: Stage) {
        panel_overlaps_kernel::launch(
            &self.x.client,
            cube_count(&self.x.client, first.div_ceil(OVERLAPS.runs())),
            CubeDim::new_1d(OVERLAPS.units),
            self.x.clone().into_buffer_arg(),
            self.basis.clone().into_buffer_arg(),
            overlaps.clone().into_buffer_arg(),
            self.panel(first),
            stage,
            dtype_to_elem_type(self.x.dtype),
        );
        counters::add_kernel();
    }

    fn take_overlaps(&self, overlaps: &CubeTensor, first: usize, stage: Stage) {
        take_panels_kernel::launch(
            &self.x.client,
            cube_count(&self.x.client, self.x.meta.shape()[1].div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            self.x.clone().into_buffer_arg(),
            overlaps.clone().into_buffer_arg(),
            self.basis.clone().into_buffer_arg(),
            self.panel(first),
            stage,
            dtype_to_elem_type(self.x.dtype),
        );
        counters::add_kernel();
    }
}

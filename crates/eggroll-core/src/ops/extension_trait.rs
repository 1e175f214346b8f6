//! The backends that run operations of this crate.

/// Declares a backend extension trait of this crate. Its operations run on every backend that is compiled in, lazily under fusion, and pass
/// gradients where they are made of ordinary operations.
macro_rules! extension_trait {
    ($(#[$attribute:meta])* pub trait $name:ident: Backend { $($operation:tt)* }) => {
        $(#[$attribute])*
        #[burn::backend::backend_extension(
            Flex: cfg(feature = "flex"),
            NdArray: cfg(feature = "ndarray"),
            Cube: cfg(feature = "cube"),
            Fusion: cfg(feature = "cube"),
            Autodiff,
        )]
        pub trait $name: Backend { $($operation)* }
    };
}

pub(in crate::ops) use extension_trait;

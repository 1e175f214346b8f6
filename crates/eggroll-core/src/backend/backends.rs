//! Which backends are compiled in, for crates that are built on this one: only here are there features of backends.

/// Expands to statements once for each backend that graphs run on, with a type of that name.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_backend {
    ($backend:ident => $($statement:tt)*) => {
        $crate::__with_flex! {{ type $backend = ::burn::backend::Flex; $($statement)* }}
        $crate::__with_ndarray! {{
            #[expect(deprecated, reason = "Burn deprecates the backend; users still ask for it")]
            type $backend = ::burn::backend::NdArray;
            $($statement)*
        }}
        $crate::__with_cube! {{ type $backend = ::burn::backend::Cube; $($statement)* }}
    };
}

/// Macros that expand to what they are given, or to nothing (the second group in braces, if there is one).
macro_rules! with {
    ($dollar:tt $($name:ident: $condition:meta,)*) => {$(
        #[cfg($condition)]
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $name {
            ({$dollar($dollar yes:tt)*} else {$dollar($dollar no:tt)*}) => { $dollar($dollar yes)* };
            ($dollar($dollar yes:tt)*) => { $dollar($dollar yes)* };
        }
        #[cfg(not($condition))]
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $name {
            ({$dollar($dollar yes:tt)*} else {$dollar($dollar no:tt)*}) => { $dollar($dollar no)* };
            ($dollar($dollar yes:tt)*) => {};
        }
    )*};
}

with! { $
    __with_flex: feature = "flex",
    __with_ndarray: feature = "ndarray",
    __with_cube: feature = "cube",
    with_host_kernels: any(feature = "flex", feature = "ndarray"),
}

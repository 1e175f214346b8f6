//! A serializer that keeps the numbers of a value, each with its field. Unlike JSON, it passes NaN and infinity.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};
use std::fmt::{Display, Error, Formatter, Write};

/// A number of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A floating-point number.
    Float(f64),
    /// An integer.
    Integer(i128),
}

/// The place in a value that a serializer is at.
pub(super) struct Walk<'a> {
    pub(super) field: String,
    pub(super) numbers: &'a mut Vec<(String, Number)>,
}

impl<'a> Walk<'a> {
    fn below(self, name: impl Display) -> Self {
        let field = if self.field.is_empty() { name.to_string() } else { format!("{}.{name}", self.field) };
        Self { field, ..self }
    }

    fn inside(self) -> Inside<'a> {
        Inside { at: self, place: 0, key: String::new() }
    }

    fn number(self, number: Number) -> Result<(), Error> {
        self.numbers.push((self.field, number));
        Ok(())
    }
}

/// A list, a map or a struct, part by part.
pub(super) struct Inside<'a> {
    at: Walk<'a>,
    /// Parts of a list already visited.
    place: usize,
    /// The key of the value that follows in a map.
    key: String,
}

impl Inside<'_> {
    fn part<T: Serialize + ?Sized>(&mut self, name: impl Display, value: &T) -> Result<(), Error> {
        value.serialize(Walk { field: self.at.field.clone(), numbers: self.at.numbers }.below(name))
    }

    fn next<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let place = self.place;
        self.place += 1;
        self.part(place, value)
    }
}

/// Methods that take an integer.
macro_rules! integers {
    ($($name:ident: $integer:ty),*) => { $(
        fn $name(self, value: $integer) -> Result<(), Error> {
            self.number(Number::Integer(i128::from(value)))
        }
    )* };
}

/// Methods for values without numbers.
macro_rules! no_numbers {
    ($($name:ident($($value:ty),*);)*) => { $(
        fn $name(self, $(_: $value),*) -> Result<(), Error> {
            Ok(())
        }
    )* };
}

/// Methods that take the parts of a value one by one.
macro_rules! lists_and_structs {
    ($($name:ident($($value:ty),*);)*) => { $(
        fn $name(self, $(_: $value),*) -> Result<Inside<'a>, Error> {
            Ok(self.inside())
        }
    )* };
}

/// The same for variants of an enum, which are maps of one key.
macro_rules! variants {
    ($($name:ident),*) => { $(
        fn $name(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Inside<'a>, Error> {
            Ok(self.below(variant).inside())
        }
    )* };
}

impl<'a> Serializer for Walk<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    integers!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_u8: u8,
        serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    );
    no_numbers! {
        serialize_bool(bool);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.number(Number::Integer(value))
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.number(Number::Integer(i128::try_from(value).unwrap_or(i128::MAX)))
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.number(Number::Float(value))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self.below(variant))
    }

    lists_and_structs! {
        serialize_seq(Option<usize>);
        serialize_tuple(usize);
        serialize_tuple_struct(&'static str, usize);
        serialize_map(Option<usize>);
        serialize_struct(&'static str, usize);
    }
    variants!(serialize_tuple_variant, serialize_struct_variant);
}

/// Traits of parts in a row.
macro_rules! lists {
    ($($name:ident, $part:ident;)*) => { $(
        impl $name for Inside<'_> {
            type Ok = ();
            type Error = Error;

            fn $part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.next(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )* };
}

/// Traits of named parts.
macro_rules! structs {
    ($($name:ident),*) => { $(
        impl $name for Inside<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.part(name, value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )* };
}

lists! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
}
structs!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key.clear();
        // A key that is not text: its value is walked all the same.
        if write!(self.key, "{}", KeyText(key)).is_err() {
            self.key = "?".to_owned();
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = std::mem::take(&mut self.key);
        self.part(key, value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

/// The text of a key.
struct KeyText<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Display for KeyText<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result<(), Error> {
        self.0.serialize(f)
    }
}

//! The tensor table.

use std::collections::HashSet;

use super::{Mode, Stop, Walk, count, indices, wide};
use crate::reader::{Dims, Tensor};
use crate::rule;
use crate::tensor_type::LAST_ID_IN_SPEC;
use crate::{Status, TensorType, Text, escape};

impl<'a> Walk<'a> {
    pub(super) fn tensors(&mut self, tensor_count: u64) -> Result<(), Stop> {
        let mut names = HashSet::new();
        let mut tensors = Vec::new();
        let end = (|| {
            for index in indices(tensor_count) {
                let tensor = self.tensor(index, &mut names)?;
                tensors.push(tensor);
            }
            Ok(())
        })();
        if let Some(gguf) = &mut self.gguf {
            gguf.tensors = tensors;
        }
        end
    }

    fn tensor(&mut self, index: usize, names: &mut HashSet<&'a [u8]>) -> Result<Tensor<'a>, Stop> {
        let record_offset = wide(self.cursor.position());
        let field = |part: &str| format!("tensors[{index}].{part}");
        let (name, at) = self.string(|| field("name"), Some(&rule::TENSOR_003))?;
        let rule = match name.len() {
            0..64 => None,
            64 => Some((&rule::TENSOR_002, "at most 63 bytes")),
            65.. => Some((&rule::TENSOR_001, "at most 64 bytes")),
        };
        if let Some((rule, expected)) = rule {
            self.report(rule, at, || {
                let found =
                    format!("{}: \"{}\"", count(wide(name.len()), "byte"), escape(name, 72));
                (field("name"), found, expected.into())
            })?;
        }
        if !names.insert(name) {
            self.report(&rule::TENSOR_004, at, || {
                let found = format!("\"{}\", seen before", escape(name, 72));
                (field("name"), found, "a name of its own".into())
            })?;
        }

        let at = self.cursor.position();
        let Some(n_dims) = self.cursor.u32() else {
            return Err(self.truncated(field("n_dims"), "a u32", Some(4)));
        };
        if n_dims > 4 {
            self.report(&rule::TENSOR_005, at, || {
                (field("n_dims"), n_dims.to_string(), "at most 4".into())
            })?;
        }
        let dims_at = self.cursor.position();
        let width = wide(self.cursor.width.bytes());
        let needed = u64::from(n_dims).saturating_mul(width);
        let Some(bytes) = self.cursor.bytes(needed) else {
            // Name the dimension in which the file ends, as the writer does.
            let whole = wide(self.cursor.remaining()).checked_div(width).unwrap_or(0);
            self.cursor.bytes(whole.saturating_mul(width));
            return Err(self.truncated(
                field(&format!("dims[{whole}]")),
                "a dimension",
                Some(width),
            ));
        };
        let dims = Dims { bytes, order: self.cursor.order, width: self.cursor.width };
        self.shape(&field, dims, dims_at)?;

        let type_at = self.cursor.position();
        let Some(type_id) = self.cursor.u32() else {
            return Err(self.truncated(field("type"), "a u32", Some(4)));
        };
        let tensor_type = self.tensor_type(&field, type_id, type_at)?;
        let byte_len = match tensor_type {
            Some(tensor_type) => self.size(&field, dims, tensor_type, dims_at)?,
            None => None,
        };

        let Some(offset) = self.cursor.u64() else {
            return Err(self.truncated(field("offset"), "a u64", Some(8)));
        };
        Ok(Tensor { record_offset, name: Text(name), dims, type_id, tensor_type, offset, byte_len })
    }

    /// ggml's checks of a shape, in ggml's order: from left to right, so that a 0 before a large
    /// dimension hides it and one behind does not.
    fn shape(
        &mut self,
        field: &impl Fn(&str) -> String,
        dims: Dims<'_>,
        at: usize,
    ) -> Result<(), Stop> {
        const MAX: u64 = i64::MAX.unsigned_abs();
        for (place, dim) in dims.iter().enumerate() {
            if dim > MAX {
                let width = dims.width.bytes();
                let at = at.saturating_add(place.saturating_mul(width));
                return self.report(&rule::TENSOR_006, at, || {
                    let part = format!("dims[{place}]");
                    (field(&part), dim.to_string(), "below 2^63".into())
                });
            }
        }
        let product = dims.iter().try_fold(1u64, |product, dim| {
            product.checked_mul(dim).filter(|&product| product <= MAX)
        });
        if product.is_none() {
            return self.report(&rule::TENSOR_007, at, || {
                (field("dims"), shown(dims), "a product below 2^63".into())
            });
        }
        Ok(())
    }

    fn tensor_type(
        &mut self,
        field: &impl Fn(&str) -> String,
        id: u32,
        at: usize,
    ) -> Result<Option<&'static TensorType>, Stop> {
        let Some(tensor_type) = TensorType::by_id(id) else {
            self.report(&rule::TENSOR_008, at, || {
                (field("type"), id.to_string(), "a type that exists (0 to 43)".into())
            })?;
            return Ok(None);
        };
        if tensor_type.status == Status::Removed {
            self.report(&rule::TENSOR_009, at, || {
                (field("type"), format!("{id} ({tensor_type})"), "a type that is in use".into())
            })?;
            return Ok(None);
        }
        if id > LAST_ID_IN_SPEC && self.mode == Mode::Diagnose {
            self.report(&rule::TENSOR_012, at, || {
                (field("type"), format!("{id} ({tensor_type})"), "0 to 39".into())
            })?;
        }
        Ok(Some(tensor_type))
    }

    fn size(
        &mut self,
        field: &impl Fn(&str) -> String,
        dims: Dims<'_>,
        tensor_type: &TensorType,
        at: usize,
    ) -> Result<Option<u64>, Stop> {
        let row = dims.iter().next().unwrap_or(1);
        let block = u64::from(tensor_type.block_len);
        if row.checked_rem(block) != Some(0) {
            // Without dimensions, it is their number that makes rows of one.
            let (part, at) = match dims.is_empty() {
                true => ("n_dims", at.saturating_sub(4)),
                false => ("dims[0]", at),
            };
            self.report(&rule::TENSOR_010, at, || {
                let found = format!("rows of {row} in a tensor of {tensor_type}");
                (field(part), found, format!("a multiple of {block}"))
            })?;
            return Ok(None);
        }
        let byte_len = dims.elements().and_then(|elements| tensor_type.byte_len(elements));
        if byte_len.is_none() {
            self.report(&rule::TENSOR_011, at, || {
                let found = format!("{} elements of {tensor_type}", shown(dims));
                (field("dims"), found, "less than 2^64 bytes".into())
            })?;
        }
        Ok(byte_len)
    }
}

/// Dimensions for people: more than a few are cut.
fn shown(dims: Dims<'_>) -> String {
    let few: Vec<_> = dims.iter().take(8).map(|dim| dim.to_string()).collect();
    match dims.len() {
        0..=8 => format!("[{}]", few.join(", ")),
        len => format!("[{}, … {len} in all]", few.join(", ")),
    }
}

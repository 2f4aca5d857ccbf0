//! GPUs, and the kernels on them.

#![allow(unsafe_code, reason = "launches kernels")]

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaStream, DevicePtr, DevicePtrMut, DriverError,
    LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gguf_assay_format::TensorType;

use super::compile::compile;
use super::source::{Output, Program, THREADS, TILE, kernel_name};
use crate::dequantize::{find_format, row_bytes};
use crate::error::{Error, Fault};

/// The first architecture that has all the instructions: that of the A100.
const FIRST: (i32, i32) = (8, 0);

/// So many thread blocks are launched for each that a GPU runs at a time, at most: each loads its
/// grid once, and still there is one left for whichever multiprocessor is done first.
const WAVES: u32 = 8;

/// What no output may miss a multiple of, in bytes. Allocations do not.
const ALIGNMENT: u64 = 16;

/// A GPU, with a stream on which kernels run in the order in which they are launched.
pub struct Device {
    stream: Arc<CudaStream>,
    architecture: String,
    multiprocessors: u32,
    /// By the name of their program; compiled when first asked for.
    modules: Mutex<HashMap<&'static str, Arc<CudaModule>>>,
}

impl Device {
    /// The GPU with this number, as the driver counts.
    ///
    /// # Errors
    ///
    /// If there is no driver, no such GPU, or the GPU is older than the kernels' instructions.
    pub fn open(ordinal: usize) -> Result<Device, Error> {
        let subject = format!("GPU {ordinal}");
        // SAFETY: the driver's library is made to be loaded.
        if !unsafe { sys::is_culib_present() } {
            let reason = "NVIDIA's driver (libcuda.so.1) was not found where the system looks";
            return Err(Fault::Cuda { subject, reason: reason.into() }.into());
        }
        let fault = |error| driver_fault(&subject, error);
        let context = CudaContext::new(ordinal).map_err(fault)?;
        let (major, minor) = context.compute_capability().map_err(fault)?;
        let architecture = format!("sm_{major}{minor}");
        if (major, minor) < FIRST {
            let reason = format!("it is {architecture}; the kernels need sm_80 or later");
            return Err(Fault::Cuda { subject, reason }.into());
        }
        let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(count).map_err(fault)?.cast_unsigned();
        let stream = context.default_stream();
        Ok(Device { stream, architecture, multiprocessors, modules: Mutex::default() })
    }

    /// The stream that its kernels run on; it also allocates memory and copies.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// What it is called.
    ///
    /// # Errors
    ///
    /// If the driver does not say.
    pub fn name(&self) -> Result<String, Error> {
        self.stream.context().name().map_err(|error| driver_fault("name of the GPU", error))
    }

    /// The architecture that code is compiled for: `sm_90`.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// How many multiprocessors it has.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// The code for a type and an output; compiles the type's program unless it has done so before.
    ///
    /// # Errors
    ///
    /// Those of [`find_type`](crate::find_type) and of [`compile`](super::compile); if the driver
    /// does not load what was compiled.
    pub fn kernel(&self, tensor_type: &TensorType, output: Output) -> Result<Kernel, Error> {
        find_format(tensor_type)?;
        let name = kernel_name(tensor_type, output);
        let program = Program::of(tensor_type).expect("a program for each type with a format");
        let fault = |error| driver_fault(&name, error);
        // What follows asks the driver about the context of the thread, which may be a new one.
        self.stream.context().bind_to_thread().map_err(fault)?;
        let function = self.module(program)?.load_function(&name).map_err(fault)?;
        let resident = function
            .occupancy_max_active_blocks_per_multiprocessor(THREADS, 0, None)
            .map_err(fault)?;
        let most_blocks = resident.max(1) * self.multiprocessors * WAVES;
        let stream = Arc::clone(&self.stream);
        Ok(Kernel { stream, tensor_type: *tensor_type, output, function, most_blocks })
    }

    fn module(&self, program: &'static Program) -> Result<Arc<CudaModule>, Error> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get(program.name) {
            return Ok(Arc::clone(module));
        }
        let binary = compile(program, &self.architecture)?;
        let module = self
            .stream
            .context()
            .load_module(Ptx::from_binary(binary.image))
            .map_err(|error| driver_fault(program.name, error))?;
        modules.insert(program.name, Arc::clone(&module));
        Ok(module)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.stream.context().ordinal())
            .field("architecture", &self.architecture)
            .finish_non_exhaustive()
    }
}

/// A GPU's code for a type and an output.
#[derive(Clone)]
pub struct Kernel {
    stream: Arc<CudaStream>,
    tensor_type: TensorType,
    output: Output,
    function: CudaFunction,
    most_blocks: u32,
}

impl Kernel {
    /// The type that it is for.
    pub fn tensor_type(&self) -> &TensorType {
        &self.tensor_type
    }

    /// What it writes.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Registers of a thread, and bytes of it that did not fit into them.
    ///
    /// # Errors
    ///
    /// If the driver does not say.
    pub fn registers_and_stack(&self) -> Result<(u32, u32), Error> {
        let fault = |error| driver_fault(&self.to_string(), error);
        self.stream.context().bind_to_thread().map_err(fault)?;
        let registers = self.function.num_regs().map_err(fault)?;
        let stack = self.function.local_size_bytes().map_err(fault)?;
        Ok((registers.cast_unsigned(), stack.cast_unsigned()))
    }

    /// Launches it: little-endian blocks, at any address, to as many numbers as they have, in their
    /// bytes. Comes back at once; the numbers are there for what follows on the device's stream.
    ///
    /// # Errors
    ///
    /// Those of [`row_bytes`] for as many elements as `out` has; if `blocks` are not exactly the
    /// bytes of so many; if either is memory of another GPU; if `out` does not start at a multiple
    /// of 16 bytes, as every allocation does; if the driver refuses. `out` is not touched then.
    pub fn dequantize(
        &self,
        blocks: &impl DevicePtr<u8>,
        out: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), Error> {
        let elements = self.check_lengths(blocks.len() as u64, out.len() as u64)?;
        let context = self.stream.context();
        if [blocks.stream(), out.stream()].iter().any(|stream| stream.context() != context) {
            return Err(self.fault("memory of another GPU".into()));
        }
        let (from, _read) = blocks.device_ptr(&self.stream);
        let (to, _written) = out.device_ptr_mut(&self.stream);
        if !to.is_multiple_of(ALIGNMENT) {
            let reason = format!("the output at {to:#x} is at no multiple of {ALIGNMENT} bytes");
            return Err(self.fault(reason));
        }
        let count = elements / u64::from(self.tensor_type.block_len);
        if count == 0 {
            return Ok(());
        }
        let config = LaunchConfig {
            grid_dim: (self.thread_blocks(elements), 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&self.function);
        launch.arg(&from).arg(&to).arg(&count);
        // SAFETY: all kernels take these three (`frame.cuh`) and any number of thread blocks; they
        // read `count` blocks and write their numbers, and both are there, as was checked, on this
        // GPU, which has the kernel's instructions.
        unsafe { launch.launch(config) }.map_err(|error| driver_fault(&self.to_string(), error))?;
        Ok(())
    }

    /// How many elements there are, if the bytes of blocks and output are those of as many.
    fn check_lengths(&self, blocks: u64, out: u64) -> Result<u64, Error> {
        let tensor_type = self.tensor_type;
        let number = self.output.byte_len() as u64;
        if !out.is_multiple_of(number) {
            return Err(Fault::Output { tensor_type, output: self.output, found: out }.into());
        }
        let elements = out / number;
        let expected = row_bytes(&tensor_type, elements)?;
        if blocks != expected {
            return Err(Fault::Bytes { tensor_type, elements, expected, found: blocks }.into());
        }
        Ok(elements)
    }

    /// As many as there are tiles, or fewer that take several. For plain types, which have no tiles,
    /// that is a few groups for each thread.
    fn thread_blocks(&self, elements: u64) -> u32 {
        let tiles = elements.div_ceil(TILE.into());
        tiles.min(self.most_blocks.into()) as u32
    }

    fn fault(&self, reason: String) -> Error {
        Fault::Cuda { subject: self.to_string(), reason }.into()
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda/{}/{}", self.tensor_type.name, self.output)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cold]
fn driver_fault(subject: &str, error: DriverError) -> Error {
    Fault::Cuda { subject: subject.into(), reason: format!("the driver says {error:?}") }.into()
}

//! A small assembler for eBPF (RFC 9669), with only the features that programs of some hundred instructions need.

use super::bpf::{Instruction, Map};
use std::os::fd::{AsFd, AsRawFd};

/// A register of the machine. R0 contains results, R1 to R5 arguments, which calls overwrite; R10 points to the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Size of a memory access (RFC 9669, 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Size {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// Operation on a register (RFC 9669, 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Arithmetic {
    Add = 0x00,
    And = 0x50,
    ShiftLeft = 0x60,
    Move = 0xb0,
}

/// Condition of a jump; numbers are unsigned (RFC 9669, 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    NotEqual = 0x50,
    Less = 0xa0,
}

/// Kernel functions, by their numbers in `enum bpf_func_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Helper {
    MapLookup = 1,
    RedirectMap = 51,
    LookUpTcp = 84,
    ReleaseSocket = 86,
    TcpSocket = 96,
}

/// The second operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Register),
    Number(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

/// A jump target, whose position may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Classes of instructions (RFC 9669, 3).
const LOAD_IMMEDIATE: u8 = 0x00;
const LOAD: u8 = 0x01;
const STORE_NUMBER: u8 = 0x02;
const STORE: u8 = 0x03;
const SWAP: u8 = 0x04;
const JUMP: u8 = 0x05;
const ARITHMETIC_64: u8 = 0x07;
/// Mode of ordinary loads and stores.
const MEMORY: u8 = 0x60;
/// Flag for a second operand that is a register.
const BY_REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xd8;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// The number of the load instruction is the descriptor of a map (BPF_PSEUDO_MAP_FD).
const MAP_DESCRIPTOR: u8 = 1;

/// Builds a program from instructions and labels.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    /// Position of each label, once it is known.
    labels: Vec<Option<usize>>,
    /// Positions of jumps, with their labels.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn emit(&mut self, code: u8, to: Register, operand: Operand, offset: i16) {
        let (from, number) = match operand {
            Operand::Register(register) => (register as u8, 0),
            Operand::Number(number) => (0, number),
        };
        self.emit_raw(code, to as u8, from, offset, number);
    }

    fn emit_raw(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) {
        let registers = match cfg!(target_endian = "little") {
            true => from << 4 | to,
            false => to << 4 | from,
        };
        self.instructions.push(Instruction {
            code,
            registers,
            offset,
            number,
        });
    }

    /// `to = to OPERATION operand`, in 64 bits.
    pub(super) fn compute(
        &mut self,
        operation: Arithmetic,
        to: Register,
        operand: impl Into<Operand>,
    ) {
        let operand = operand.into();
        let code = ARITHMETIC_64 | operation as u8 | source_bit(operand);
        self.emit(code, to, operand, 0);
    }

    /// Converts the two low bytes of `to` from network byte order to the machine's.
    pub(super) fn order_for_machine(&mut self, to: Register) {
        self.emit(SWAP | TO_BIG_ENDIAN, to, Operand::Number(16), 0);
    }

    /// `to = *(from + offset)`.
    pub(super) fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) {
        self.emit(LOAD | MEMORY | size as u8, to, from.into(), offset);
    }

    /// `*(to + offset) = operand`.
    pub(super) fn store(
        &mut self,
        size: Size,
        to: Register,
        offset: i16,
        operand: impl Into<Operand>,
    ) {
        let operand = operand.into();
        let class = match operand {
            Operand::Register(_) => STORE,
            Operand::Number(_) => STORE_NUMBER,
        };
        self.emit(class | MEMORY | size as u8, to, operand, offset);
    }

    /// `to = map`, in the form that helpers expect.
    pub(super) fn load_map(&mut self, to: Register, map: &Map) {
        let code = LOAD_IMMEDIATE | Size::Double as u8;
        let descriptor = map.as_fd().as_raw_fd();
        self.emit_raw(code, to as u8, MAP_DESCRIPTOR, 0, descriptor);
        // The instruction occupies two slots; the second contains the upper half of the number.
        self.emit_raw(0, 0, 0, 0, 0);
    }

    /// `R0 = helper(R1, ...)`.
    pub(super) fn call(&mut self, helper: Helper) {
        self.emit_raw(JUMP | CALL, 0, 0, 0, helper as i32);
    }

    /// Ends the program with the result in R0.
    pub(super) fn exit(&mut self) {
        self.emit_raw(JUMP | EXIT, 0, 0, 0, 0);
    }

    /// Creates a label that will be placed later.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places the label here.
    pub(super) fn place(&mut self, label: Label) {
        let before = self.labels[label.0].replace(self.instructions.len());
        assert!(before.is_none(), "a label has one place");
    }

    /// Jumps to the label.
    pub(super) fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.emit_raw(JUMP, 0, 0, 0, 0);
    }

    /// Jumps to the label if `left CONDITION right`.
    pub(super) fn jump_if(
        &mut self,
        left: Register,
        condition: Condition,
        right: impl Into<Operand>,
        label: Label,
    ) {
        let right = right.into();
        self.jumps.push((self.instructions.len(), label));
        let code = JUMP | condition as u8 | source_bit(right);
        self.emit(code, left, right, 0);
    }

    /// Returns the program.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (jump, label) in self.jumps {
            let target = self.labels[label.0].expect("a label that is jumped to has a place");
            // Offsets count from the next instruction.
            let distance = target as isize - (jump as isize + 1);
            self.instructions[jump].offset = distance.try_into().expect("programs are short");
        }
        self.instructions
    }
}

fn source_bit(operand: Operand) -> u8 {
    match operand {
        Operand::Register(_) => BY_REGISTER,
        Operand::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an instruction like the kernel's assembler on a little-endian machine.
    fn bytes(instruction: &Instruction) -> [u8; 8] {
        let [offset_low, offset_high] = instruction.offset.to_le_bytes();
        let number = instruction.number.to_le_bytes();
        let (code, registers) = (instruction.code, instruction.registers);
        let [a, b, c, d] = number;
        [code, registers, offset_low, offset_high, a, b, c, d]
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_the_standard_says() {
        use Register::{R0, R1, R2, R3, R10};
        let mut a = Assembler::default();
        let (back, out) = (a.label(), a.label());
        a.place(back);
        a.compute(Arithmetic::Move, R2, R1);
        a.compute(Arithmetic::Add, R2, 14);
        a.jump_if(R2, Condition::Greater, R3, out);
        a.load(Size::Half, R1, R2, 12);
        a.order_for_machine(R1);
        a.store(Size::Word, R10, -4, 7);
        a.store(Size::Double, R10, -16, R1);
        a.call(Helper::MapLookup);
        a.jump_if(R0, Condition::Equal, 0, back);
        a.place(out);
        a.exit();
        let program: Vec<[u8; 8]> = a.finish().iter().map(bytes).collect();
        // Encoding as shown by `llvm-objdump -d`.
        let expected = [
            [0xbf, 0x12, 0, 0, 0, 0, 0, 0],
            [0x07, 0x02, 0, 0, 14, 0, 0, 0],
            [0x2d, 0x32, 6, 0, 0, 0, 0, 0],
            [0x69, 0x21, 12, 0, 0, 0, 0, 0],
            [0xdc, 0x01, 0, 0, 16, 0, 0, 0],
            [0x62, 0x0a, 0xfc, 0xff, 7, 0, 0, 0],
            [0x7b, 0x1a, 0xf0, 0xff, 0, 0, 0, 0],
            [0x85, 0, 0, 0, 1, 0, 0, 0],
            [0x15, 0x00, 0xf7, 0xff, 0, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(program, expected);
    }
}

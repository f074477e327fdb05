"""Questions of the chapter on the Tensor Unit, adapters, Switch Engine and register files."""

from tcptune.exec.conformance.questions.adapter_switch_registers import engines, registers

__all__ = ["engines", "registers"]

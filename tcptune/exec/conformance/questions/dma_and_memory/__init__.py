"""Questions of the chapter on DMA and memory."""

from tcptune.exec.conformance.questions.dma_and_memory import aggregates, collectives, commands, memories

__all__ = ["aggregates", "collectives", "commands", "memories"]

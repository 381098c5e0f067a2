"""Recorded functions: Python runs once, and what it computed is replayed as a flat list of calls.

A recorder makes a graph, which is scheduled, given memory, and bound to arrays as a program.
"""

from mirrored.program.arguments import register_in_force as register_in_force
from mirrored.program.arguments import register_per_replica as register_per_replica
from mirrored.program.arguments import register_variable as register_variable
from mirrored.program.buffers import Arenas as Arenas
from mirrored.program.decorator import function as function
from mirrored.program.executor import THREADS_FROM as THREADS_FROM
from mirrored.program.executor import make_program as make_program
from mirrored.program.function import Function as Function
from mirrored.program.graph import Graph as Graph
from mirrored.program.iterator import PeekingIterator as PeekingIterator
from mirrored.program.program import Program as Program
from mirrored.program.recorder import GraphRecorder as GraphRecorder
from mirrored.program.replay import Feeder as Feeder
from mirrored.program.replay import GuardFailed as GuardFailed
from mirrored.program.replay import Report as Report
from mirrored.program.running_eagerly import functions_run_eagerly as functions_run_eagerly
from mirrored.program.running_eagerly import run_functions_eagerly as run_functions_eagerly
from mirrored.program.thread_pool import ThreadPool as ThreadPool
from mirrored.program.trace_cache import Trace as Trace
from mirrored.program.trace_cache import TraceCache as TraceCache
from mirrored.program.tracing import trace as trace

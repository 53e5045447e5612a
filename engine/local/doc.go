// Package local is an engine that runs Go functions durably in the processes of its users. Use it for demos,
// for tests, and in programs without a workflow engine.
//
// Begin with [New] and [Handle]; then [Engine.Run] executes runs. Dispatchers and upkeep use the [Engine] too.
//
// A run is itself a job in the queue `local:` plus the run's type, in the same store as the jobs or in another.
// Its id follows from its ref, so a repeated start finds it. All processes that call Handle and Run share the
// runs, like workers. Each job has one run, which executes at least once. If its process dies, the lease ends,
// upkeep recovers the run, and another process begins anew.
//
// The settings of that queue control execution: max_attempts retries within a run, and the keep settings are
// the engine's retention. The run's label `job` names its job. Do not prune, requeue or complete a run by hand,
// because the engine then gives wrong answers: requeue the job instead, which starts another run. Next, read
// package dispatcher and docs/decisions/0015-local-engine.md.
package local

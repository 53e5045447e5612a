// Package local is an engine that runs Go functions in the processes of its users, durably: for demos, for tests, and for
// those who have no workflow engine.
//
// A run is itself a job, in a queue of its own: runs of the type ship are jobs of the queue local:ship, of the same store
// as the jobs or of another. The run's id follows from its ref, so that starting it again finds it. Workers of every
// process that calls Handle and Run execute the runs; what is said of workers holds for them. Above all, a function may
// run again: when its process is killed, the run's lease ends, upkeep recovers it, and the next process begins anew. So
// there is one run per job, and that run is executed at least once.
//
// The settings of local:ship say how runs are executed, and can be changed like any other's: what failed is tried again
// within its run if max_attempts says so, and what they keep is for how long the engine knows runs that ended. A run
// is there to be looked at like a job, and its label job says whose it is. Who prunes, requeues or completes
// one by hand takes the engine's word away: requeue the job instead, which then gets another run.
package local

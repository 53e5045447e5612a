// Package sluice is a durable job queue in a database that you already run. It stores jobs until they are due, then
// hands them to workers under leases.
//
// Begin with a store: sqlite.Open, postgres.Open or memory.New. [NewClient] makes a [Client] of the store, and
// [QueueOf] names a queue with the type of its payloads. [TypedQueue.Enqueue] stores a job. Package worker runs
// your handler for each job, with retries.
//
// The other packages:
//
//	store/sqlite      one machine, one file
//	store/postgres    many machines
//	store/memory      tests and trials
//	worker            claims jobs and runs handlers
//	upkeep            recovers lost jobs, expires, repairs and deletes; run it with every store
//	dispatcher        hands jobs to an engine
//	engine            the port of systems that run jobs elsewhere, such as Temporal
//	presence          the processes that work, by their heartbeats
//	audit             makes the audit tamper-evident
//	observe, trace    observers of every call, such as OpenTelemetry spans
//	schema            checks payloads against JSON Schemas
//
// Each feature is a package of functions that take a store: admission, alert, await, changes, deadletter, edit,
// explain, forecast, health, hold, operation, pressure, schedule, search, stat and tenancy.
//
// A [State] says where a job is in its life, and [Moves] lists the state machine. [Store] is the port that the
// stores implement. [Settings] say how a queue behaves; the store keeps them, and each process reads a change
// within [SettingsInterval].
//
// Read next: docs/guide/start.md has a complete first program, docs/concepts.md explains the terms, and
// docs/walk.md walks through the code.
package sluice

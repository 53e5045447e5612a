// Package sluice is a durable dispatch queue. It keeps work in a database that you already run
// until it is due, and lets it through to workers that claim jobs under leases.
//
// A Client puts jobs into a Store, looks at them and acts on them; a Worker (package worker) runs
// them; upkeep (package upkeep) tends what nobody else looks after. Stores are PostgreSQL, SQLite
// and memory, in the packages below store. The life of a job is the state machine of Moves.
package sluice

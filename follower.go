package sluice

// Follower is a row of yours that follows its job: a statement that the store runs with each move of a queue's jobs, in the
// transaction of the move. Whoever makes the move has it run: a worker, a dispatcher, upkeep, the command line, a program of
// another version, an SQL function, plain SQL. A move that is rolled back takes the statement's effect along.
//
// The stores in SQLite and PostgreSQL have Follow, which takes one; see docs/guide/follow.md.
type Follower struct {
	// Name tells followers of a store apart: a lower-case letter, then up to 29 lower-case letters, digits and _.
	Name string
	// Queue is the queue whose jobs are followed. It need not be there yet.
	Queue string
	// States are the states whose beginning is told. Default: all seven. Fewer cost less.
	States []State
	// Statement is one update, insert or delete, at most 10,000 bytes long, the same for SQLite and PostgreSQL, such as
	//
	//	update executions set state = moved.state, error = moved.error where id = moved.id
	//
	// It names the move as moved, with these columns, none of which is null:
	//
	//	moved.id          text     the job's id, as ID.String writes it
	//	moved.key         text     the job's key; empty: it has none
	//	moved.queue       text
	//	moved.tenant      text     empty: none
	//	moved.generation  integer  1, and 1 more for each requeue
	//	moved.state       text     the State that begins
	//	moved.attempts    integer  how many attempts have failed
	//	moved.error       text     the last error; empty: none
	//	moved.ref         text     the ref of its run at an engine; empty: none
	//	moved.at          integer  when, in microseconds since 1970
	//
	// It is told of no enqueue, since the enqueuer writes the row in the same transaction, and of no pruning.
	Statement string
}

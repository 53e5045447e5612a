package sluice

// Follower is an SQL statement that the store runs with each move of a queue's jobs, in the same transaction. It
// keeps a row of yours in the job's state.
//
// The database itself runs the statement for every mover: worker, dispatcher, upkeep, command line, SQL functions,
// plain SQL, and programs of other versions. If the move is rolled back, the statement is rolled back too.
//
// Follow of the stores in SQLite and PostgreSQL takes a Follower; see docs/guide/follow.md.
type Follower struct {
	// Name names the follower within its store: a lower-case letter, then up to 29 lower-case letters, digits and
	// _.
	Name string
	// Queue is the queue whose jobs the statement follows. The queue need not exist yet.
	Queue string
	// States are the states that run the statement when a job enters them. Default: all seven. Fewer states cost
	// less.
	States []State
	// Statement is one update, insert or delete, at most 10,000 bytes long, in SQL that SQLite and PostgreSQL
	// share, such as
	//
	//	update executions set state = moved.state, error = moved.error where id = moved.id
	//
	// The statement reads the move from the row moved, with these columns, none of which is null:
	//
	//	moved.id          text     the job's id, as ID.String writes it
	//	moved.key         text     the job's key; empty: none
	//	moved.queue       text     the job's queue
	//	moved.tenant      text     the job's tenant; empty: none
	//	moved.generation  integer  1, and 1 more for each requeue
	//	moved.state       text     the State that the job enters
	//	moved.attempts    integer  how many attempts have failed
	//	moved.error       text     the last error; empty: none
	//	moved.ref         text     the ref of its run at an engine; empty: none
	//	moved.at          integer  when, in microseconds since 1970
	//
	// The statement does not run for an enqueue, because the enqueuer can write the row in the same transaction. It
	// does not run for a deletion either.
	Statement string
}

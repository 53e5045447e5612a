package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/awaiting"
	"github.com/sluice-queue/sluice/internal/storing"
)

var (
	//go:embed sql/ended.sql
	endedSQL string
	//go:embed sql/awaited_queues.sql
	awaitedQueuesSQL string
	//go:embed sql/ended_since.sql
	endedSinceSQL string
)

const (
	// endsAtOnce is the most ended jobs that one look reads of a queue and outcome.
	endsAtOnce = 1000
	// endsShare bounds these looks: each is followed by this many times its duration.
	endsShare = 9
	// endsAgo is how far back a look goes at the most. Whoever waits looks at its jobs by itself too.
	endsAgo = 5 * time.Second
)

// Await makes the store signal the ends of jobs, in this process and in others.
func (s *Store) Await(ctx context.Context, ids []sluice.ID) error {
	from := now()
	s.awaited.Add(ids, time.Now())
	var queues []string
	err := s.read(ctx, "look for the queues of awaited jobs", func(tx runner) (err error) {
		queues, err = list(tx, scanOne[string], awaitedQueuesSQL, idList(ids))
		return err
	})
	s.writer.foreign.add(queues, from)
	return err
}

// Ended returns the ends of the jobs that have ended or are not stored.
func (s *Store) Ended(ctx context.Context, ids []sluice.ID) (ended []await.End, err error) {
	err = s.read(ctx, "look for ended jobs", func(tx runner) (err error) {
		ended, err = list(tx, scanEnd, endedSQL, idList(ids))
		return err
	})
	return ended, err
}

func scanEnd(rows *sql.Rows) (end await.End, err error) {
	var id, result []byte
	var outcome, failure *string
	var finishedAt *int64
	var removed bool
	err = rows.Scan(&id, &outcome, &result, &removed, &failure, &finishedAt)
	end = await.End{ID: idOf(id), State: sluice.State(orZero(outcome)), Error: orZero(failure), FinishedAt: timeOf(finishedAt)}
	end.Result, _ = storing.Result(result)
	end.ResultRemoved = removed
	return end, err
}

// foreignEnds looks for awaited jobs that other processes have ended. A commit of another process only shows that the
// file has changed. So each look reads the history of the queues of awaited jobs, from the last look on.
type foreignEnds struct {
	due  bool      // others have committed since the last look
	next time.Time // the earliest next look

	mu     sync.Mutex
	queues map[string]*queueEnds
}

// queueEnds is a queue with awaited jobs.
type queueEnds struct {
	until    time.Time // nobody waits any longer, unless added again
	outcomes [3]endsUpto
}

// endsUpto is how far the history of one outcome is read: to an instant, in µs, and there to a job.
type endsUpto struct {
	outcome sluice.State
	at, seq int64
}

// add adds queues whose history is to be read from an instant on. A queue that is already read goes on as it is.
func (f *foreignEnds) add(queues []string, from int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, queue := range queues {
		if f.queues == nil {
			f.queues = make(map[string]*queueEnds)
		}
		q := f.queues[queue]
		if q == nil {
			q = &queueEnds{}
			for i, outcome := range []sluice.State{sluice.StateCompleted, sluice.StateDead, sluice.StateCancelled} {
				q.outcomes[i] = endsUpto{outcome: outcome, at: from}
			}
			f.queues[queue] = q
		}
		q.until = time.Now().Add(awaiting.Time)
	}
}

// look calls ended with each job that has ended since the last look, if it is due.
func (f *foreignEnds) look(tx runner, ended func(sluice.ID)) error {
	begun := time.Now()
	if !f.due || begun.Before(f.next) {
		return nil
	}
	f.due = false
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.next = time.Now().Add(endsShare * time.Since(begun)) }()
	for name, q := range f.queues {
		if begun.After(q.until) {
			delete(f.queues, name)
			continue
		}
		for i := range q.outcomes {
			more, err := q.outcomes[i].read(tx, name, ended)
			if err != nil {
				return err
			}
			f.due = f.due || more
		}
	}
	return nil
}

// read reads on in the history, and reports whether there may be more.
func (u *endsUpto) read(tx runner, queue string, ended func(sluice.ID)) (more bool, err error) {
	if ago := now() - endsAgo.Microseconds(); u.at < ago {
		u.at, u.seq = ago, 0
	}
	ids, err := list(tx, func(rows *sql.Rows) (id []byte, err error) {
		err = rows.Scan(&id, &u.at, &u.seq)
		return id, err
	}, endedSinceSQL, queue, string(u.outcome), u.at, u.seq, endsAtOnce)
	for _, id := range ids {
		ended(idOf(id))
	}
	return len(ids) == endsAtOnce, err
}

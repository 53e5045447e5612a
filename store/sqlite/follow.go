package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/follow"
)

var (
	//go:embed sql/followers.sql
	followersSQL string
	//go:embed sql/follower_save.sql
	followerSaveSQL string
	//go:embed sql/follower_triggers.sql
	followerTriggersSQL string
)

// movedLive and movedDone hold the SQL expressions for a move's columns, in a trigger on the table
// of the new state.
var (
	movedLive = movedIn("new.state", "(strftime('%s', 'now') * 1000000 + substr(strftime('%f', 'now'), 4) * 1000)")
	movedDone = movedIn("new.outcome", "new.finished_at")
)

func movedIn(state, at string) follow.Expressions {
	const id = "(select lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' || " +
		"substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) from sluice_job where sluice_job.seq = new.seq)"
	return follow.Expressions{
		"id": id, "key": "coalesce((select key from sluice_job where sluice_job.seq = new.seq), '')", "queue": "new.queue", "tenant": "new.tenant",
		"generation": "new.generation", "state": state, "attempts": "new.attempts", "error": "coalesce(new.error, '')",
		"ref": "coalesce(new.ref, '')", "at": at,
	}
}

// Follow registers a follower: SQLite runs its statement with each move of the queue's jobs, in the
// move's transaction. Follow takes effect when it returns, and replaces a follower of the same
// name. Call it at each start of the program; a follower that is already registered is left alone,
// and nothing is locked. The statement runs for every program that makes a move, including the
// sqlite3 shell and programs that do not register this follower.
//
// If this file cannot run the statement, Follow returns a [sluice.ErrInvalid]. If the statement
// fails later, the move fails with a [sluice.ErrFollower].
func (s *Store) Follow(ctx context.Context, f sluice.Follower) error {
	if err := follow.Check(f, func(string) bool { return false }); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	var there bool
	err := s.read(ctx, "follow", func(tx runner) (err error) {
		there, err = follows(tx, f)
		return err
	})
	if err != nil || there {
		return err
	}
	return s.changeSchema(ctx, "follow", func(tx runner) error {
		if there, err := follows(tx, f); err != nil || there {
			return err // another process has just registered it
		}
		if err := ownTablesAlone(tx, f); err != nil {
			return err
		}
		return makeFollower(tx, f)
	})
}

// Unfollow removes a follower. A follower that does not exist is no error.
func (s *Store) Unfollow(ctx context.Context, name string) error {
	if err := follow.CheckName(name); err != nil {
		return fmt.Errorf("unfollow: %w", err)
	}
	return s.changeSchema(ctx, "unfollow", func(tx runner) error {
		if err := dropFollowTriggers(tx, triggersOf(sluice.Follower{Name: name})); err != nil {
			return err
		}
		_, err := tx.exec("delete from sluice_follower where name = ?", name)
		return err
	})
}

// changeSchema runs do, which creates or drops triggers. A store that opened its file itself has
// connections that cannot change the schema, so changeSchema opens another.
func (s *Store) changeSchema(ctx context.Context, verb string, do func(tx runner) error) error {
	if !s.ownsDB {
		return s.write(ctx, verb, func(tx runner, _ bool) error { return do(tx) })
	}
	return s.call(ctx, verb, func(ctx context.Context, _ bool) error {
		if err := s.writer.file.check(); err != nil {
			return err
		}
		db, err := openDB(s.writer.file.path, openUnguarded)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return locked(ctx, conn, func(tx foreignTx) error {
			if err := fits(tx); err != nil {
				return err
			}
			return do(tx)
		})
	})
}

// Followers lists the followers by name.
func (s *Store) Followers(ctx context.Context) (out []sluice.Follower, err error) {
	err = s.read(ctx, "read followers", func(tx runner) error {
		out, err = list(tx, scanFollower, followersSQL, "")
		return err
	})
	return out, err
}

func scanFollower(rows *sql.Rows) (f sluice.Follower, err error) {
	var states string
	err = rows.Scan(&f.Name, &f.Queue, &states, &f.Statement)
	f.States = follow.StatesOf(states)
	return f, err
}

// trigger is a trigger that runs a follower's statement.
type trigger struct{ name, text string }

func scanTrigger(rows *sql.Rows) (t trigger, err error) {
	err = rows.Scan(&t.name, &t.text)
	return t, err
}

// triggersOf returns the triggers of a follower, with the text that SQLite keeps. No trigger fires
// for an enqueue: an insert into sluice_live counts as a move only if its generation is above 1.
func triggersOf(f sluice.Follower) []trigger {
	made := func(name, on, when string, moved follow.Expressions) trigger {
		name = "sluice_follow_" + f.Name + "_" + name
		return trigger{name, fmt.Sprintf("CREATE TRIGGER %s after %s for each row when %s begin %s; end", name, on, when, follow.Expand(f.Statement, moved))}
	}
	live := follow.When(f, "new.queue", "new.state")
	return []trigger{
		made("moved", "update of state on sluice_live", "old.state is not new.state and "+live, movedLive),
		made("requeued", "insert on sluice_live", "new.generation > 1 and "+live, movedLive),
		made("ended", "insert on sluice_done", follow.When(f, "new.queue", "new.outcome"), movedDone),
	}
}

// follows reports whether a follower is stored with all its triggers.
func follows(tx runner, f sluice.Follower) (bool, error) {
	found, err := list(tx, scanFollower, followersSQL, f.Name)
	if err != nil || len(found) == 0 || !follow.Same(found[0], f) {
		return false, err
	}
	lost, err := lostTriggers(tx, f)
	return len(lost) == 0, err
}

// lostTriggers returns the triggers of a follower that are missing or changed.
func lostTriggers(tx runner, f sluice.Follower) ([]trigger, error) {
	stored, err := list(tx, scanTrigger, followerTriggersSQL)
	if err != nil {
		return nil, err
	}
	there := make(map[trigger]bool)
	for _, t := range stored {
		there[t] = true
	}
	var lost []trigger
	for _, t := range triggersOf(f) {
		if !there[t] {
			lost = append(lost, t)
		}
	}
	return lost, nil
}

// ownTablesAlone refuses a statement that names tables of Sluice.
func ownTablesAlone(tx runner, f sluice.Follower) error {
	names, err := list(tx, scanOne[string], "select lower(name) from sqlite_master where name like 'sluice\\_%' escape '\\'")
	if err != nil {
		return err
	}
	ours := make(map[string]bool, len(names))
	for _, name := range names {
		ours[name] = true
	}
	return follow.Check(f, func(name string) bool { return ours[name] })
}

// makeFollower stores a follower and creates its triggers.
func makeFollower(tx runner, f sluice.Follower) error {
	if err := tryStatement(tx, f.Statement); err != nil {
		return err
	}
	if err := dropFollowTriggers(tx, triggersOf(f)); err != nil {
		return err
	}
	for _, t := range triggersOf(f) {
		if _, err := tx.exec(t.text); err != nil {
			return refusedStatement(err)
		}
	}
	_, err := tx.exec(followerSaveSQL, f.Name, f.Queue, follow.StatesText(f), f.Statement, now())
	return err
}

func dropFollowTriggers(tx runner, triggers []trigger) error {
	for _, t := range triggers {
		if _, err := tx.exec("drop trigger if exists " + t.name); err != nil {
			return err
		}
	}
	return nil
}

// tryStatement checks a statement by having SQLite plan it, which runs nothing.
func tryStatement(tx runner, statement string) error {
	rows, err := tx.query("explain query plan " + follow.Expand(statement, follow.Sample()))
	if err != nil {
		return refusedStatement(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() { // a write ends only with its last row
		continue
	}
	return errors.Join(rows.Err(), rows.Close())
}

// refusedStatement returns the error for a statement that SQLite cannot parse. Errors with other
// causes stay as they are.
func refusedStatement(err error) error {
	if codeOf(err) != codeError {
		return err
	}
	return follow.Refused(err)
}

// withoutFollowers changes the schema while no follower's trigger exists, then creates the triggers
// again. A schema step may rebuild their tables, and SQLite refuses to rename a table while a
// trigger names a table that is gone.
func withoutFollowers(tx runner, change func() error) error {
	triggers, err := list(tx, scanTrigger, followerTriggersSQL)
	if err != nil {
		return err
	}
	if err := dropFollowTriggers(tx, triggers); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	for _, t := range triggers {
		if _, err := tx.exec(t.text); err != nil {
			return fmt.Errorf("make the trigger %s again: %w", t.name, err)
		}
	}
	return nil
}

// ofFollower returns the error of a follower's statement as a [sluice.ErrFollower]. SQLite does not
// name the failing statement; if the error breaks a rule of a table outside Sluice, it comes from a
// follower.
func ofFollower(tx runner, err error) error {
	switch codeOf(err) {
	case codeError, codeConstraint, codeMismatch:
	default:
		return err
	}
	if errors.Is(err, sluice.ErrInvalid) || strings.Contains(err.Error(), "sluice_") {
		return err
	}
	followers, failed := list(tx, scanFollower, followersSQL, "")
	if failed != nil || len(followers) == 0 {
		return err
	}
	out := &sluice.FollowerError{Err: err}
	for _, f := range followers {
		out.Followers = append(out.Followers, f.Name)
	}
	return out
}

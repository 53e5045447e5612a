package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/internal/lead"
	"github.com/sluice-queue/sluice/presence"
)

//go:embed sql/leads.sql
var leadsSQL string

//go:embed sql/lead_save.sql
var leadSaveSQL string

//go:embed sql/lead_leave.sql
var leadLeaveSQL string

// Elect elects a holder for tasks, among all processes on the file. Only changes are written: once
// per third of the lease for the leader, nothing for a standby.
func (s *Store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) (leads []string, err error) {
	var changed []presence.Leader
	look := func(tx runner) error {
		had, err := leadsOf(tx)
		if err != nil {
			return err
		}
		leads, changed = nil, nil
		at := now()
		for _, task := range tasks {
			var has presence.Leader
			if i := slices.IndexFunc(had, func(l presence.Leader) bool { return l.Task == task }); i >= 0 {
				has = had[i]
			}
			next, is, news := lead.Take(task, has, holder, timeOf(&at), lease)
			if is {
				leads = append(leads, task)
			}
			if news {
				changed = append(changed, next)
			}
		}
		return nil
	}
	if err := s.read(ctx, "lead", look); err != nil {
		return nil, err
	}
	if len(changed) == 0 {
		return leads, nil
	}
	err = s.write(ctx, "lead", func(tx runner, _ bool) error {
		if err := look(tx); err != nil {
			return err
		}
		for _, l := range changed {
			if _, err := tx.exec(leadSaveSQL, l.Task, l.Holder, l.Since.UnixMicro(), l.Until.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return leads, nil
}

// Leaders lists the leader of each task.
func (s *Store) Leaders(ctx context.Context) (out []presence.Leader, err error) {
	err = s.read(ctx, "list leads", func(tx runner) error {
		out, err = leadsOf(tx)
		return err
	})
	return out, err
}

func leadsOf(tx runner) ([]presence.Leader, error) {
	at := now()
	return list(tx, func(rows *sql.Rows) (presence.Leader, error) {
		var l presence.Leader
		var since, until int64
		err := rows.Scan(&l.Task, &l.Holder, &since, &until)
		l.Since, l.Until, l.Held = timeOf(&since), timeOf(&until), until > at
		return l, err
	}, leadsSQL)
}

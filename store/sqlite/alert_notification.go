package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/notify"
)

//go:embed sql/alert_forget_silences.sql
var alertForgetSilencesSQL string

//go:embed sql/alert_forget_receivers.sql
var alertForgetReceiversSQL string

//go:embed sql/alert_receiver_new.sql
var alertReceiverNewSQL string

//go:embed sql/alert_receiver_seen.sql
var alertReceiverSeenSQL string

//go:embed sql/alert_receiver_queues.sql
var alertReceiverQueuesSQL string

// SaveAlerts stores one evaluation: alert states, audit entries, and a job per message and receiver.
func (s *Store) SaveAlerts(ctx context.Context, round alert.Evaluation) error {
	var jobs []sluice.Insert
	var receipts []sluice.Receipt
	err := s.write(ctx, "save alerts", func(tx runner, again bool) error {
		if again {
			stored, err := list(tx, scanAlert, alertsSQL)
			if err != nil || alertsStored(stored, round.Alerts) {
				return err
			}
		}
		for _, a := range round.Alerts {
			put, err := affected(tx.exec(alertSaveSQL, a.Rule, a.Queue, string(a.State), a.Since.UnixMicro(), micros(a.PendingSince), micros(a.FiredAt),
				micros(a.ResolvedAt), a.Told, a.Value, a.Threshold, string(a.Severity), micros(a.At), a.Detail, a.Version+1))
			if err == nil && put == 0 {
				err = sluice.ErrConflict
			}
			if err != nil {
				return err
			}
		}
		if err := forgetAlerting(tx); err != nil {
			return err
		}
		for _, e := range round.Entries {
			e.At = time.Time{}
			if err := tell(tx, e); err != nil {
				return err
			}
		}
		var err error
		jobs, receipts, err = enqueueNotifications(tx, round, again)
		return err
	})
	if err == nil {
		s.tally.Enqueued(jobs, receipts)
	}
	return err
}

// alertsStored reports whether an earlier try has stored the alerts.
func alertsStored(stored, alerts []alert.Alert) bool {
	for _, want := range alerts {
		if !slices.ContainsFunc(stored, func(a alert.Alert) bool {
			return a.Rule == want.Rule && a.Queue == want.Queue && a.Version == want.Version+1 && a.State == want.State &&
				a.At.Equal(want.At.Truncate(time.Microsecond))
		}) {
			return false
		}
	}
	return len(alerts) > 0
}

// forgetAlerting deletes silences that are over, and receivers that no process asks for any more.
func forgetAlerting(tx runner) error {
	unseen := now() - alert.ReceiverKept.Microseconds()
	for _, forget := range []struct {
		text string
		at   int64
	}{{alertForgetSilencesSQL, now()}, {alertForgetReceiversSQL, unseen}} {
		if _, err := tx.exec(forget.text, forget.at); err != nil {
			return err
		}
	}
	return nil
}

// enqueueNotifications stores a job for each message and receiver, and makes the queues that are missing.
func enqueueNotifications(tx runner, round alert.Evaluation, again bool) ([]sluice.Insert, []sluice.Receipt, error) {
	if len(round.Messages) == 0 {
		return nil, nil, nil
	}
	queues, err := list(tx, scanOne[string], alertReceiverQueuesSQL)
	if err != nil {
		return nil, nil, err
	}
	names, err := jsonOf(queues)
	if err != nil {
		return nil, nil, err
	}
	stored, err := list(tx, scanOne[string], queuesStoredSQL, names)
	if err != nil {
		return nil, nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(queues), func(name string) bool { return slices.Contains(stored, name) })
	if err := makeQueues(tx, missing, notify.Act()); err != nil {
		return nil, nil, err
	}
	jobs, err := round.Jobs(queues)
	if err != nil {
		return nil, nil, err
	}
	receipts, _, err := enqueue(tx, jobs, again)
	return jobs, receipts, err
}

// SaveReceiver stores a receiver, and that a process asks for it now. It writes at most once a minute.
func (s *Store) SaveReceiver(ctx context.Context, name string) error {
	var known bool
	err := s.read(ctx, "look at receiver", func(tx runner) error {
		_, err := list(tx, func(rows *sql.Rows) (struct{}, error) { return struct{}{}, rows.Scan(&known) },
			alertReceiverNewSQL, name, now()-time.Minute.Microseconds())
		return err
	})
	if err != nil || known {
		return err
	}
	return s.write(ctx, "save receiver", func(tx runner, _ bool) error {
		_, err := tx.exec(alertReceiverSeenSQL, name, notify.Queue(name), now())
		return err
	})
}

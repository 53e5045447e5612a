package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/notify"
	"github.com/sluice-queue/sluice/internal/saving"
)

//go:embed sql/alert_receiver_seen.sql
var alertReceiverSeenSQL string

//go:embed sql/alert_receiver_queues.sql
var alertReceiverQueuesSQL string

// compareAlerts is the order in which alerts are locked.
func compareAlerts(a, b alert.Alert) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Queue, b.Queue))
}

// notifications returns the jobs of an evaluation, one for each message and receiver.
func (s *Store) notifications(ctx context.Context, round alert.Evaluation) ([]sluice.Insert, error) {
	if len(round.Messages) == 0 {
		return nil, nil
	}
	var queues []string
	err := s.call(ctx, "read receivers", func(ctx context.Context, _ bool) (err error) {
		queues, err = list(ctx, s.pool, pgx.RowTo[string], alertReceiverQueuesSQL, alert.ReceiverKept)
		return err
	})
	if err != nil {
		return nil, err
	}
	return round.Jobs(queues)
}

// enqueueNotifications stores jobs in the queues of receivers, and makes those queues that are missing.
func enqueueNotifications(ctx context.Context, tx pgx.Tx, jobs []sluice.Insert, again bool) (enqueued, error) {
	if len(jobs) == 0 {
		return enqueued{}, nil
	}
	names := slices.Sorted(maps.Keys(queuesOf(jobs)))
	if err := makeQueues(ctx, tx, names, notify.Act()); err != nil {
		return enqueued{}, err
	}
	return enqueue(ctx, tx, jobs, enqueuing{again: again, brief: true})
}

// SaveSilence stores a silence that begins now, and its audit entry.
func (s *Store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (alert.Silence, error) {
	var saved []alert.Silence
	err := s.call(ctx, "save silence", func(ctx context.Context, _ bool) error {
		before, err := audited(ctx, s.pool, act, audit.ObjectAlert, silence.Name())
		if err != nil {
			return err
		}
		if before {
			saved, err = list(ctx, s.pool, scanSilence, alertSilenceSQL, [16]byte(silence.ID))
			if err == nil && len(saved) == 0 {
				err = sluice.ErrNotFound // the silence was ended since
			}
			return err
		}
		saved, err = list(ctx, s.pool, scanSilence, alertSilenceSaveSQL, [16]byte(silence.ID), silence.Rule, silence.Queue, silence.During, act.By,
			act.Reason, silence.Name(), nullUUID(act.ID))
		if err == nil && len(saved) == 0 { // the silence is already stored
			saved, err = list(ctx, s.pool, scanSilence, alertSilenceSQL, [16]byte(silence.ID))
		}
		if err == nil && len(saved) == 0 {
			err = sluice.ErrConflict // the silence was ended meanwhile
		}
		return err
	})
	if err != nil {
		return alert.Silence{}, err
	}
	return saved[0], nil
}

// EndSilence ends a silence before its time, and audits this.
func (s *Store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error {
	act = saving.Named(act)
	return s.call(ctx, "end silence", func(ctx context.Context, _ bool) error {
		ended, err := list(ctx, s.pool, pgx.RowTo[string], alertSilenceEndSQL, [16]byte(id), act.By, act.Reason, nullUUID(act.ID))
		if err != nil || len(ended) > 0 {
			return err
		}
		before, err := list(ctx, s.pool, pgx.RowTo[bool], alertSilenceEndedSQL, nullUUID(act.ID), [16]byte(id))
		if err == nil && !before[0] {
			err = sluice.ErrNotFound
		}
		return err
	})
}

// SaveReceiver stores a receiver, and that a process asks for it now.
func (s *Store) SaveReceiver(ctx context.Context, name string) error {
	return s.call(ctx, "save receiver", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, alertReceiverSeenSQL, name, notify.Queue(name))
	})
}

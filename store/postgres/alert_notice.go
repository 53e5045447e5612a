package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

//go:embed sql/alert_receiver_seen.sql
var alertReceiverSeenSQL string

//go:embed sql/alert_notices_add.sql
var alertNoticesAddSQL string

//go:embed sql/alert_notices_take.sql
var alertNoticesTakeSQL string

//go:embed sql/alert_notices_settle.sql
var alertNoticesSettleSQL string

// compareAlerts is the order in which alerts are locked.
func compareAlerts(a, b alert.Alert) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Queue, b.Queue))
}

// tellRound stores the audit entries and the notifications of an evaluation.
func tellRound(ctx context.Context, tx pgx.Tx, round alert.Evaluation) error {
	if err := noteEntries(ctx, tx, round.Entries); err != nil || len(round.Messages) == 0 {
		return err
	}
	var rules, queues, messages []string
	for _, m := range round.Messages {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		rules, queues, messages = append(rules, m.Rule), append(queues, m.Queue), append(messages, string(text))
	}
	return exec(ctx, tx, alertNoticesAddSQL, rules, queues, messages)
}

// SaveSilence stores a silence that begins now, and its audit entry.
func (s *Store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (alert.Silence, error) {
	var saved []alert.Silence
	err := s.call(ctx, "save silence", func(ctx context.Context, _ bool) (err error) {
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
	return s.strike(ctx, "end silence", alertSilenceEndSQL, [16]byte(id), act.By, act.Reason, nullUUID(act.ID))
}

// TakeNotices registers a receiver and returns its next notifications, held for the caller.
func (s *Store) TakeNotices(ctx context.Context, receiver string, limit int, hold time.Duration) ([]alert.Notice, error) {
	var out []alert.Notice
	err := s.call(ctx, "take notices", func(ctx context.Context, _ bool) (err error) {
		if err := exec(ctx, s.pool, alertReceiverSeenSQL, receiver); err != nil {
			return err
		}
		out, err = list(ctx, s.pool, scanNotice, alertNoticesTakeSQL, receiver, limit, hold)
		return err
	})
	slices.SortFunc(out, func(a, b alert.Notice) int { return cmp.Compare(a.Seq, b.Seq) })
	return out, err
}

func scanNotice(row pgx.CollectableRow) (alert.Notice, error) {
	var n alert.Notice
	var message []byte
	if err := row.Scan(&n.Seq, &n.Receiver, &message, &n.CreatedAt, &n.Attempts, &n.Error); err != nil {
		return n, err
	}
	n.CreatedAt = n.CreatedAt.UTC()
	return n, json.Unmarshal(message, &n.Message)
}

// SettleNotices deletes delivered notifications, and puts off the rest.
func (s *Store) SettleNotices(ctx context.Context, results []alert.NoticeResult) error {
	results = slices.Clone(results)
	slices.SortFunc(results, func(a, b alert.NoticeResult) int { return cmp.Compare(a.Seq, b.Seq) })
	var seqs, again []int64
	var done []bool
	var errors []string
	for _, r := range results {
		seqs, done = append(seqs, r.Seq), append(done, r.Done)
		again, errors = append(again, r.Again.Milliseconds()), append(errors, sluice.StoredText(r.Error))
	}
	if len(results) == 0 {
		return nil
	}
	return s.call(ctx, "settle notices", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, alertNoticesSettleSQL, seqs, done, again, errors)
	})
}

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

//go:embed sql/alert_forget_silences.sql
var alertForgetSilencesSQL string

//go:embed sql/alert_forget_notices.sql
var alertForgetNoticesSQL string

//go:embed sql/alert_forget_receivers.sql
var alertForgetReceiversSQL string

//go:embed sql/alert_receiver_new.sql
var alertReceiverNewSQL string

//go:embed sql/alert_receiver_seen.sql
var alertReceiverSeenSQL string

//go:embed sql/alert_notices_add.sql
var alertNoticesAddSQL string

//go:embed sql/alert_notices_take.sql
var alertNoticesTakeSQL string

//go:embed sql/alert_notice_told.sql
var alertNoticeToldSQL string

//go:embed sql/alert_notice_again.sql
var alertNoticeAgainSQL string

// SaveAlerts stores one evaluation: alert states, audit entries, and a notification per message and receiver.
func (s *Store) SaveAlerts(ctx context.Context, round alert.Evaluation) error {
	return s.write(ctx, "save alerts", func(tx runner, again bool) error {
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
		return tellRound(tx, round)
	})
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
	}{{alertForgetSilencesSQL, now()}, {alertForgetNoticesSQL, unseen}, {alertForgetReceiversSQL, unseen}} {
		if _, err := tx.exec(forget.text, forget.at); err != nil {
			return err
		}
	}
	return nil
}

// tellRound stores the audit entries and the notifications of an evaluation.
func tellRound(tx runner, round alert.Evaluation) error {
	for _, e := range round.Entries {
		e.At = time.Time{}
		if err := tell(tx, e); err != nil {
			return err
		}
	}
	for _, m := range round.Messages {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if _, err := tx.exec(alertNoticesAddSQL, m.Rule, m.Queue, string(text), now()); err != nil {
			return err
		}
	}
	return nil
}

// TakeNotices registers a receiver and returns its next notifications. Without notifications,
// TakeNotices only reads.
func (s *Store) TakeNotices(ctx context.Context, receiver string, limit int, hold time.Duration) ([]alert.Notice, error) {
	var known, waiting bool
	err := s.read(ctx, "look at notices", func(tx runner) error {
		at := now()
		_, err := list(tx, func(rows *sql.Rows) (struct{}, error) { return struct{}{}, rows.Scan(&known, &waiting) },
			alertReceiverNewSQL, receiver, at-time.Minute.Microseconds(), at)
		return err
	})
	if err != nil || known && !waiting {
		return nil, err
	}
	var out []alert.Notice
	err = s.write(ctx, "take notices", func(tx runner, _ bool) (err error) {
		at := now()
		if _, err := tx.exec(alertReceiverSeenSQL, receiver, at); err != nil {
			return err
		}
		out, err = list(tx, scanNotice, alertNoticesTakeSQL, receiver, limit, at, at+hold.Microseconds())
		return err
	})
	slices.SortFunc(out, func(a, b alert.Notice) int { return cmp.Compare(a.Seq, b.Seq) })
	return out, err
}

func scanNotice(rows *sql.Rows) (alert.Notice, error) {
	var n alert.Notice
	var message string
	var created int64
	if err := rows.Scan(&n.Seq, &n.Receiver, &message, &created, &n.Attempts, &n.Error); err != nil {
		return n, err
	}
	n.CreatedAt = timeOf(&created)
	return n, json.Unmarshal([]byte(message), &n.Message)
}

// SettleNotices deletes delivered notifications, and puts off the rest.
func (s *Store) SettleNotices(ctx context.Context, results []alert.NoticeResult) error {
	if len(results) == 0 {
		return nil
	}
	return s.write(ctx, "settle notices", func(tx runner, _ bool) error {
		for _, r := range results {
			var err error
			if r.Done {
				_, err = tx.exec(alertNoticeToldSQL, r.Seq)
			} else {
				_, err = tx.exec(alertNoticeAgainSQL, r.Seq, now()+r.Again.Microseconds(), sluice.StoredText(r.Error))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

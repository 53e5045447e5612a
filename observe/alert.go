package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

func (s *store) AlertBook(ctx context.Context) (alert.Book, error) {
	return do(ctx, s, "alert_book", "", s.alerts.AlertBook)
}

func (s *store) SaveAlertRule(ctx context.Context, rule alert.Rule, act sluice.Act) (alert.Rule, error) {
	return do(ctx, s, "save_alert_rule", rule.Queue, func(ctx context.Context) (alert.Rule, error) {
		return s.alerts.SaveAlertRule(ctx, rule, act)
	})
}

func (s *store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error {
	_, err := do(ctx, s, "delete_alert_rule", queue, func(ctx context.Context) (none, error) {
		return none{}, s.alerts.DeleteAlertRule(ctx, name, queue, act)
	})
	return err
}

func (s *store) SaveAlerts(ctx context.Context, round alert.Evaluation) error {
	_, err := do(ctx, s, "save_alerts", "", func(ctx context.Context) (none, error) { return none{}, s.alerts.SaveAlerts(ctx, round) })
	return err
}

func (s *store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (alert.Silence, error) {
	return do(ctx, s, "save_silence", silence.Queue, func(ctx context.Context) (alert.Silence, error) {
		return s.alerts.SaveSilence(ctx, silence, act)
	})
}

func (s *store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error {
	_, err := do(ctx, s, "end_silence", "", func(ctx context.Context) (none, error) { return none{}, s.alerts.EndSilence(ctx, id, act) })
	return err
}

func (s *store) SaveReceiver(ctx context.Context, name string) error {
	_, err := do(ctx, s, "save_receiver", "", func(ctx context.Context) (none, error) { return none{}, s.alerts.SaveReceiver(ctx, name) })
	return err
}

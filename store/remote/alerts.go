package remote

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/wire"
)

// rulePath is the path of a rule of alerts.
func rulePath(name string) string { return "/alerts/rules/" + url.PathEscape(name) }

// AlertBook reads all that is stored of alerts.
func (s *Store) AlertBook(ctx context.Context) (alert.Book, error) {
	var answer wire.AlertBook
	err := s.call(ctx, request{verb: "read alerts", path: "/alerts/book", out: &answer})
	return answer.Read(), err
}

// SaveAlertRule stores a rule.
func (s *Store) SaveAlertRule(ctx context.Context, rule alert.Rule, act sluice.Act) (alert.Rule, error) {
	var view wire.AlertRuleView
	err := s.call(ctx, saving("save a rule of alerts", rulePath(rule.Name), &act, wire.SaveAlertRuleBody{Rule: rule, ReasonBody: why(act)}, &view))
	return view.Read(), err
}

// DeleteAlertRule deletes a stored rule.
func (s *Store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error {
	r := deleting("delete a rule of alerts", rulePath(name), &act)
	params(r.query).text("queue", queue)
	return s.call(ctx, r)
}

// SaveSilence stores a silence that begins now.
func (s *Store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (saved alert.Silence, err error) {
	body := wire.SilenceBody{
		ID: silence.ID, Rule: silence.Rule, Queue: silence.Queue, All: silence.Rule == "" && silence.Queue == "", For: sluice.FormatDuration(silence.During), Reason: act.Reason,
	}
	err = s.call(ctx, posting("silence alerts", "/alerts/silences", &act, body, &saved))
	saved.During = silence.During
	return saved, err
}

// EndSilence ends a silence early.
func (s *Store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error {
	return s.call(ctx, deleting("end a silence", "/alerts/silences/"+id.String(), &act))
}

// Evaluate evaluates all rules at the server, and changes nothing; package alert asks for it.
func (s *Store) Evaluate(ctx context.Context) (all []alert.Finding, err error) {
	var answer wire.EvaluationList
	err = s.call(ctx, request{verb: "evaluate rules of alerts", method: http.MethodPost, path: "/alerts/test", out: &answer})
	for _, view := range answer.Rules {
		all = append(all, view.Read())
	}
	return all, err
}

// SaveAlerts is an [*UnsupportedError]: the server evaluates.
func (s *Store) SaveAlerts(context.Context, alert.Evaluation) error {
	return s.theServer("To store alerts")
}

// SaveReceiver is an [*UnsupportedError]: the server notifies.
func (s *Store) SaveReceiver(context.Context, string) error {
	return s.theServer("To notify of alerts")
}

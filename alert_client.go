package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxSilence bounds how long alerts can be silenced at once.
const maxSilence = 90 * day

// Alerts reads the rules as they count, the alerts, the silences and the receivers.
func (c *Client) Alerts(ctx context.Context) (AlertBook, error) {
	book, err := c.store.AlertBook(ctx)
	if err != nil {
		return AlertBook{}, err
	}
	book.Rules = withPresets(book.Rules)
	return book, nil
}

// withPresets puts the presets beside the stored rules, but for those in whose place a rule is stored.
func withPresets(stored []AlertRule) []AlertRule {
	all := slices.Clone(stored)
	for i := range all {
		all[i] = all[i].withSource()
	}
	for _, preset := range AlertPresets() {
		if !slices.ContainsFunc(stored, func(r AlertRule) bool { return r.Name == preset.Name && r.Queue == "" }) {
			all = append(all, preset)
		}
	}
	slices.SortFunc(all, compareRules)
	return all
}

func compareRules(a, b AlertRule) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Queue, b.Queue))
}

// withSource names the source of the preset that a rule was made of, which is not stored.
func (r AlertRule) withSource() AlertRule {
	if preset, found := presetOf(r.Name); found && preset.Metric == r.Metric {
		r.Source = preset.Source
	}
	return r
}

// SetAlertRule changes a rule for all queues, or, with a queue, for that queue alone. What is not stored yet begins as the
// rule that counts there now; an unknown name as a new rule, whose metric must be said. It gives the rule as it was and as
// it is.
func (c *Client) SetAlertRule(ctx context.Context, name, queue string, act Act, change func(*AlertRule) error) (before, after AlertRule, err error) {
	if err := act.Check(); err != nil {
		return before, after, err
	}
	book, err := c.store.AlertBook(ctx)
	if err != nil {
		return before, after, err
	}
	before = ruleFor(book.Rules, name, queue)
	after = before
	if err := edit(&after, change); err != nil {
		return before, after, err
	}
	after.Name, after.Queue, after.Version = name, queue, before.Version
	if queue != "" && before.Version == 0 {
		after.Covers = CoversAll // it was said of this very queue
		if after.Threshold != before.Threshold {
			after.RateShare = 0
		}
	}
	if err := after.Check(); err != nil {
		return before, after, err
	}
	if after == before {
		return before, after, nil
	}
	after, err = c.store.SaveAlertRule(ctx, after, act)
	if err != nil {
		return before, after, fmt.Errorf("rule %q: %w", AlertName(name, queue), err)
	}
	return before, after.withSource(), nil
}

// ruleFor gives the rule that counts for a name and queue. One that is stored for that very queue has its version; any other
// is what the queue's own begins with.
func ruleFor(stored []AlertRule, name, queue string) AlertRule {
	for _, at := range []string{queue, ""} {
		for _, r := range stored {
			if r.Name != name || r.Queue != at {
				continue
			}
			if at != queue {
				r.Version = 0
			}
			return r.withSource()
		}
	}
	if preset, found := presetOf(name); found {
		return preset
	}
	return AlertRule{Name: name, Op: ">", Window: time.Hour, For: time.Minute, Severity: SeverityWarning, Says: name}
}

// ResetAlertRule forgets what somebody stored of a rule: of a preset that counts again, of any other that it is gone. It is
// an ErrNotFound where nothing is stored.
func (c *Client) ResetAlertRule(ctx context.Context, name, queue string, act Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := c.store.DeleteAlertRule(ctx, name, queue, act); err != nil {
		return fmt.Errorf("rule %q: %w", AlertName(name, queue), err)
	}
	return nil
}

// Silence keeps receivers from being told of alerts for a while. It needs a reason.
func (c *Client) Silence(ctx context.Context, silence Silence, act Act) (Silence, error) {
	if act.Reason == "" {
		return Silence{}, invalid("reason", "who silences alerts must say why; it is kept in the audit")
	}
	if silence.During <= 0 || silence.During > maxSilence {
		return Silence{}, invalid("for", fmt.Sprintf("%s is not longer than nothing and at most %s", silence.During, FormatDuration(maxSilence)))
	}
	if silence.Queue != "" {
		if err := CheckQueueName(silence.Queue); err != nil {
			return Silence{}, err
		}
	}
	if err := errors.Join(act.Check(), c.knowsRule(ctx, silence.Rule)); err != nil {
		return Silence{}, err
	}
	if silence.ID.IsZero() {
		silence.ID = NewID()
	}
	return c.store.SaveSilence(ctx, silence, act)
}

// knowsRule is an ErrNotFound for a rule that does not exist; the empty name stands for all.
func (c *Client) knowsRule(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if _, found := presetOf(name); found {
		return nil
	}
	book, err := c.store.AlertBook(ctx)
	if err == nil && !slices.ContainsFunc(book.Rules, func(r AlertRule) bool { return r.Name == name }) {
		err = fmt.Errorf("rule %.80q: %w", name, ErrNotFound)
	}
	return err
}

// Unsilence ends a silence before its time. One that is unknown or over is an ErrNotFound.
func (c *Client) Unsilence(ctx context.Context, id ID, act Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := c.store.EndSilence(ctx, id, act); err != nil {
		return fmt.Errorf("silence %s: %w", id, err)
	}
	return nil
}

package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/feature"
)

// maxSilence is the longest silence.
const maxSilence = 90 * 24 * time.Hour

// Read reads the rules in effect, the alerts, the silences and the receivers of a store.
func Read(ctx context.Context, store sluice.Store) (Book, error) {
	book, err := Given(store).AlertBook(ctx)
	if err != nil {
		return Book{}, err
	}
	book.Rules = withPresets(book.Rules)
	return book, nil
}

// withPresets adds the presets that no stored rule replaces.
func withPresets(stored []Rule) []Rule {
	all := slices.Clone(stored)
	for i := range all {
		all[i] = all[i].withSource()
	}
	for _, preset := range Presets() {
		if !slices.ContainsFunc(stored, func(r Rule) bool { return r.Name == preset.Name && r.Queue == "" }) {
			all = append(all, preset)
		}
	}
	slices.SortFunc(all, compareRules)
	return all
}

func compareRules(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Queue, b.Queue))
}

// withSource fills in the source of the rule's preset, which stores do not keep, and the figures of its sentence.
func (r Rule) withSource() Rule {
	if preset, found := presetOf(r.Name); found && preset.Metric == r.Metric {
		r.Source = preset.Source
		r = r.follow(preset)
	}
	return r
}

// SetRule changes the rule of a name for all queues, or for one queue. It returns the rule before and after the
// change.
//
// If the rule is not stored, change gets the rule in effect. If the name is unknown, change gets a new rule and
// must set its metric.
//
// A rule that fails [Rule.Check] is a [sluice.ErrInvalid]. If somebody else changed the rule in the meantime, the
// error is a [sluice.ErrConflict].
func SetRule(ctx context.Context, store sluice.Store, name, queue string, act sluice.Act, change func(*Rule) error) (before, after Rule, err error) {
	if err := act.Check(); err != nil {
		return before, after, err
	}
	if err := sluice.CheckGiven("change", change); err != nil {
		return before, after, err
	}
	book, err := Given(store).AlertBook(ctx)
	if err != nil {
		return before, after, err
	}
	before = ruleFor(book.Rules, name, queue)
	after = before
	if err := change(&after); err != nil {
		return before, after, err
	}
	after.Name, after.Queue, after.Version = name, queue, before.Version
	if queue != "" && before.Version == 0 {
		after.Covers = CoversAll // somebody set it for this queue
		if after.Threshold != before.Threshold {
			after.RateShare = 0
		}
	}
	after = after.follow(before)
	if err := after.Check(); err != nil {
		return before, after, err
	}
	if after == before {
		return before, after, nil
	}
	after, err = Given(store).SaveAlertRule(ctx, after, act)
	if err != nil {
		return before, after, fmt.Errorf("rule %q: %w", RuleName(name, queue), err)
	}
	return before, after.withSource(), nil
}

// ruleFor returns the rule in effect for a name and queue. A rule that is stored for that queue has its version.
// Any other rule is the beginning of the queue's own.
func ruleFor(stored []Rule, name, queue string) Rule {
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
	return Rule{Name: name, Op: ">", Window: time.Hour, For: time.Minute, Severity: health.SeverityWarning, Summary: name}
}

// ResetRule deletes a stored rule. If a preset has its name, the preset is in effect again. If no rule is stored,
// the error is a [sluice.ErrNotFound].
func ResetRule(ctx context.Context, store sluice.Store, name, queue string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := Given(store).DeleteAlertRule(ctx, name, queue, act); err != nil {
		return fmt.Errorf("rule %q: %w", RuleName(name, queue), err)
	}
	return nil
}

// StartSilence silences alerts for silence.During, at most 90 days. The act needs a reason. An unknown rule is a
// [sluice.ErrNotFound].
func StartSilence(ctx context.Context, store sluice.Store, silence Silence, act sluice.Act) (Silence, error) {
	if act.Reason == "" {
		return Silence{}, feature.Invalid("reason", "a silence needs a reason; the audit keeps it")
	}
	if silence.During <= 0 || silence.During > maxSilence {
		return Silence{}, feature.Invalid("for", fmt.Sprintf("%s must be more than 0s and at most %s", silence.During, sluice.FormatDuration(maxSilence)))
	}
	if silence.Queue != "" {
		if err := sluice.CheckQueueName(silence.Queue); err != nil {
			return Silence{}, err
		}
	}
	if err := errors.Join(act.Check(), knowsRule(ctx, store, silence.Rule)); err != nil {
		return Silence{}, err
	}
	if silence.ID.IsZero() {
		silence.ID = act.ID
	}
	return Given(store).SaveSilence(ctx, silence, act)
}

// knowsRule returns an ErrNotFound for an unknown rule. The empty name means all rules.
func knowsRule(ctx context.Context, store sluice.Store, name string) error {
	if name == "" {
		return nil
	}
	if _, found := presetOf(name); found {
		return nil
	}
	book, err := Given(store).AlertBook(ctx)
	if err == nil && !slices.ContainsFunc(book.Rules, func(r Rule) bool { return r.Name == name }) {
		err = fmt.Errorf("rule %.80q: %w", name, sluice.ErrNotFound)
	}
	return err
}

// StopSilence ends a silence early. An unknown silence, or a silence that is over, is a [sluice.ErrNotFound].
func StopSilence(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := Given(store).EndSilence(ctx, id, act); err != nil {
		return fmt.Errorf("silence %s: %w", id, err)
	}
	return nil
}

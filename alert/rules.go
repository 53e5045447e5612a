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

// maxSilence bounds how long alerts can be silenced at once.
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

// withPresets puts the presets beside the stored rules, but for those in whose place a rule is stored.
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

// withSource names the source of the preset that a rule was made of, which is not stored.
func (r Rule) withSource() Rule {
	if preset, found := presetOf(r.Name); found && preset.Metric == r.Metric {
		r.Source = preset.Source
	}
	return r
}

// SetRule changes the rule of a name for all queues, or, with a queue, for that queue alone. A rule that is not stored yet
// begins as the rule in effect there; an unknown name begins as a new rule, and change must give it a metric. SetRule
// returns the rule before and after the change. A rule that breaks a rule of [Rule.Check] is a [sluice.ErrInvalid], one
// that somebody else changed in between a [sluice.ErrConflict].
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
	after, err = Given(store).SaveAlertRule(ctx, after, act)
	if err != nil {
		return before, after, fmt.Errorf("rule %q: %w", RuleName(name, queue), err)
	}
	return before, after.withSource(), nil
}

// ruleFor gives the rule that counts for a name and queue. One that is stored for that very queue has its version; any other
// is what the queue's own begins with.
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
	return Rule{Name: name, Op: ">", Window: time.Hour, For: time.Minute, Severity: health.SeverityWarning, Says: name}
}

// ResetRule deletes a stored rule: a preset of its name takes effect again, any other rule is gone. It is a
// [sluice.ErrNotFound] where no rule is stored.
func ResetRule(ctx context.Context, store sluice.Store, name, queue string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := Given(store).DeleteAlertRule(ctx, name, queue, act); err != nil {
		return fmt.Errorf("rule %q: %w", RuleName(name, queue), err)
	}
	return nil
}

// StartSilence keeps alerts from receivers for silence.During, at most 90 days. The act must have a reason.
func StartSilence(ctx context.Context, store sluice.Store, silence Silence, act sluice.Act) (Silence, error) {
	if act.Reason == "" {
		return Silence{}, feature.Invalid("reason", "who silences alerts must say why; it is kept in the audit")
	}
	if silence.During <= 0 || silence.During > maxSilence {
		return Silence{}, feature.Invalid("for", fmt.Sprintf("%s is not longer than nothing and at most %s", silence.During, sluice.FormatDuration(maxSilence)))
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
		silence.ID = sluice.NewID()
	}
	return Given(store).SaveSilence(ctx, silence, act)
}

// knowsRule is an ErrNotFound for a rule that does not exist; the empty name stands for all.
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

// StopSilence ends a silence before its time. An unknown silence, or one that is over, is a [sluice.ErrNotFound].
func StopSilence(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := Given(store).EndSilence(ctx, id, act); err != nil {
		return fmt.Errorf("silence %s: %w", id, err)
	}
	return nil
}

package changes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Change is a scheduled change of a queue's settings, which upkeep applies. It is a revert at an instant, or settings
// for a window of each day.
type Change struct {
	// ID names the change within its queue. It is the version of the queue with which the change was made.
	ID int64 `json:"id"`
	// RevertAt is when upkeep reverts the change's changes, by the store's clock. Zero: the change has a Window.
	RevertAt time.Time `json:"revert_at,omitzero"`
	// Window is when the settings in Set apply. Nil: the change is a revert.
	Window *Window `json:"window,omitempty"`
	// Set has settings by name, with values as people write them.
	Set map[string]string `json:"set,omitempty"`
	// Open says that upkeep has applied the window's settings and not yet reverted them.
	Open bool `json:"open,omitempty"`
	// Swaps has the changes that upkeep will revert, by setting.
	Swaps map[string]Swap `json:"swaps,omitempty"`
	// MadeBy, MadeAt and Reason say who made the change, when and why.
	MadeBy string    `json:"made_by"`
	MadeAt time.Time `json:"made_at,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Swap is a setting's value before a scheduled change changed it and after, as people write it.
type Swap struct {
	// Before and After are the values.
	Before string `json:"before"`
	After  string `json:"after"`
}

// String describes the change in a few words.
func (p Change) String() string {
	if p.Window == nil {
		return fmt.Sprintf("revert %s at %s", p.swapText(), p.RevertAt.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s from %s", p.setText(), p.Window)
}

// swapText writes the values that a revert restores.
func (p Change) swapText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Swaps)) {
		parts = append(parts, fmt.Sprintf("%s to %.100s", name, cmp.Or(p.Swaps[name].Before, "nothing")))
	}
	return strings.Join(parts, ", ")
}

// setText writes the settings of a window.
func (p Change) setText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		parts = append(parts, fmt.Sprintf("%s=%.100s", name, p.Set[name]))
	}
	return strings.Join(parts, " ")
}

// Next returns when the change changes something next, seen from an instant: its revert, or the next edge of its
// window. If the returned instant has passed, upkeep applies the change at its next look.
func (p Change) Next(now time.Time) (time.Time, error) {
	if p.Window == nil {
		return p.RevertAt, nil
	}
	open, since, until, err := p.Window.span(now)
	if err != nil || open == p.Open {
		return until, err
	}
	if since.Before(p.MadeAt) { // somebody made the change while the window was open
		since = p.MadeAt
	}
	return since, nil
}

// overlay returns the settings, changed by the window's settings.
func (p Change) overlay(settings sluice.Settings) (sluice.Settings, error) {
	for name, value := range p.Set {
		setting, err := sluice.SettingNamed(name)
		if err != nil {
			return settings, err
		}
		if err := setting.Parse(&settings, value); err != nil {
			return settings, err
		}
	}
	return settings, settings.Check()
}

// swapsBetween returns the values of settings before and after a change. Without names, it returns the settings
// that differ.
func swapsBetween(before, after sluice.Settings, names ...string) map[string]Swap {
	swaps := make(map[string]Swap)
	for _, d := range sluice.AllSettings() {
		swap := Swap{d.Format(before), d.Format(after)}
		if slices.Contains(names, d.Name) || len(names) == 0 && swap.Before != swap.After {
			swaps[d.Name] = swap
		}
	}
	return swaps
}

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

// Plan is a scheduled change of a queue's settings, which upkeep applies: a revert at an instant, or settings that count
// during a window of each day.
type Plan struct {
	// ID names the plan within its queue: the version of the queue by which it was made.
	ID int64 `json:"id"`
	// RevertAt is when what the plan changed is put back, by the store's clock; zero: it has a Window.
	RevertAt time.Time `json:"revert_at,omitzero"`
	// Window is when the settings in Set count; nil: the plan is to revert.
	Window *Window `json:"window,omitempty"`
	// Set holds settings by their names, as people write them.
	Set map[string]string `json:"set,omitempty"`
	// Open says that the window's settings count now, as far as upkeep has carried it out.
	Open bool `json:"open,omitempty"`
	// Swaps tells what the plan has changed and will put back.
	Swaps map[string]Swap `json:"swaps,omitempty"`
	// MadeBy, MadeAt and Reason tell who wants it.
	MadeBy string    `json:"made_by"`
	MadeAt time.Time `json:"made_at,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Swap is a setting's value before a plan changed it and after, as people write them.
type Swap struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// String says in a few words what the plan will do.
func (p Plan) String() string {
	if p.Window == nil {
		return fmt.Sprintf("revert %s at %s", p.swapText(), p.RevertAt.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s from %s", p.setText(), p.Window)
}

func (p Plan) swapText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Swaps)) {
		parts = append(parts, fmt.Sprintf("%s to %.100s", name, cmp.Or(p.Swaps[name].Before, "nothing")))
	}
	return strings.Join(parts, ", ")
}

func (p Plan) setText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		parts = append(parts, fmt.Sprintf("%s=%.100s", name, p.Set[name]))
	}
	return strings.Join(parts, " ")
}

// Next is when the plan changes something next, seen from an instant: its revert, or the next edge of its
// window. An instant that has passed, such as the edge that was the last, is carried out as soon as upkeep looks.
func (p Plan) Next(now time.Time) (time.Time, error) {
	if p.Window == nil {
		return p.RevertAt, nil
	}
	open, since, until, err := p.Window.span(now)
	if err != nil || open == p.Open {
		return until, err
	}
	if since.Before(p.MadeAt) { // it was made while the window was open
		since = p.MadeAt
	}
	return since, nil
}

// overlay returns settings with those of the window.
func (p Plan) overlay(settings sluice.Settings) (sluice.Settings, error) {
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

// swapsBetween returns the values of settings before and after a change. Without names, it returns those that differ.
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

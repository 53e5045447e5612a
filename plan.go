package sluice

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Plan is a change of a queue's settings that is to come, and that upkeep carries out: a change that is
// reverted at an instant, or settings that count during a window of each day.
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

	revertIn time.Duration // RevertAt is so long after the instant at which the plan is stored
}

// Swap is a setting's value before a plan changed it and after, as people write them.
type Swap struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// String says in a few words what the plan will do.
func (p Plan) String() string {
	if p.Window == nil {
		return fmt.Sprintf("revert %s at %s", p.swapText(), instant(p.RevertAt))
	}
	return fmt.Sprintf("%s from %s", p.setText(), p.Window)
}

func (p Plan) swapText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Swaps)) {
		parts = append(parts, fmt.Sprintf("%s to %.100s", name, orElse(p.Swaps[name].Before, "nothing")))
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

// stamp completes a plan that is stored for the first time.
func (p *Plan) stamp(version int64, at time.Time) {
	if p.ID != 0 {
		return
	}
	p.ID, p.MadeAt = version, at
	if p.Window == nil {
		p.RevertAt = storedInstant(at.Add(p.revertIn))
	}
}

func clonePlans(plans []Plan) []Plan {
	out := slices.Clone(plans)
	for i := range out {
		out[i].Swaps, out[i].Set = maps.Clone(out[i].Swaps), maps.Clone(out[i].Set)
	}
	return out
}

// carryOut gives the queue as its plans want it by its Now, and why; an empty why: nothing is due. One plan is
// carried out at a time, so that each has its line in the audit. A plan that cannot be read keeps none of
// the others from being carried out.
func (q Queue) carryOut() (next Queue, why string, err error) {
	q.Plans = clonePlans(q.Plans)
	for i, p := range q.Plans {
		if p.Window == nil {
			if !p.RevertAt.After(q.Now) {
				why = join("reverted as "+p.MadeBy+" said: "+orElse(p.Reason, "no reason given"), q.putBack(i))
				q.Plans = slices.Delete(q.Plans, i, i+1)
				return q, why, nil
			}
			continue
		}
		open, _, bad := p.Window.At(q.Now)
		switch {
		case bad != nil:
			err = errors.Join(err, &PlanError{Queue: q.Name, Plan: p.ID, Err: bad})
		case open && !p.Open:
			why = join(fmt.Sprintf("it is %s, as %s said: %s", p.Window, p.MadeBy, orElse(p.Reason, "no reason given")), q.open(i))
			return q, why, nil
		case !open && p.Open:
			why = join(fmt.Sprintf("the time %s is over, for which %s changed settings", p.Window, p.MadeBy), q.putBack(i))
			q.Plans[i].Open, q.Plans[i].Swaps = false, nil
			return q, why, nil
		}
	}
	return q, "", err
}

func join(why string, but []string) string {
	return strings.Join(append([]string{why}, but...), "; but ")
}

// open sets what a window is for. If that would break a rule, it sets nothing until the window opens the next
// time. What is put back first was set last: the plan goes to the end.
func (q *Queue) open(i int) (but []string) {
	p := q.Plans[i]
	p.Open, p.Swaps = true, nil
	settings, err := p.overlay(q.Settings)
	if err != nil {
		but = append(but, "nothing is set: "+err.Error())
	} else {
		p.Swaps = swapsBetween(q.Settings, settings, slices.Collect(maps.Keys(p.Set)))
		q.Settings = settings
	}
	q.Plans = append(slices.Delete(q.Plans, i, i+1), p)
	return but
}

// overlay gives settings with those of the window.
func (p Plan) overlay(settings Settings) (Settings, error) {
	for name, value := range p.Set {
		setting, err := SettingNamed(name)
		if err != nil {
			return settings, err
		}
		if err := setting.Parse(&settings, value); err != nil {
			return settings, err
		}
	}
	return settings, settings.Check()
}

func swapsBetween(before, after Settings, names []string) map[string]Swap {
	swaps := make(map[string]Swap)
	for _, d := range allSettings {
		if slices.Contains(names, d.Name) {
			swaps[d.Name] = Swap{d.Format(before), d.Format(after)}
		}
	}
	return swaps
}

// putBack puts back what a plan has changed, and tells what stays all the same. If a later plan changed it
// further, that one will put back what this one found. What somebody else has changed since stays.
func (q *Queue) putBack(i int) (but []string) {
	settings := q.Settings
	for _, name := range slices.Sorted(maps.Keys(q.Plans[i].Swaps)) {
		swap := q.Plans[i].Swaps[name]
		if later := q.laterPlan(i, name, swap.After); later != nil {
			later.Swaps[name] = Swap{swap.Before, later.Swaps[name].After}
			continue
		}
		setting, err := SettingNamed(name)
		if err != nil || setting.Format(q.Settings) != swap.After {
			but = append(but, name+" was changed since, and stays")
			continue
		}
		if err := setting.Parse(&settings, swap.Before); err != nil {
			but = append(but, name+" stays: "+err.Error())
		}
	}
	if err := settings.Check(); err != nil {
		return append(but, "nothing is put back: "+err.Error())
	}
	q.Settings = settings
	return but
}

// laterPlan finds the plan that changed a setting further from what plan i had made of it.
func (q *Queue) laterPlan(i int, name, value string) *Plan {
	for k := i + 1; k < len(q.Plans); k++ {
		if swap, ok := q.Plans[k].Swaps[name]; ok && swap.Before == value {
			return &q.Plans[k]
		}
	}
	return nil
}

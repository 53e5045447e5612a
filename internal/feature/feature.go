// Package feature holds the code that the packages of features share: they find their port in a store, refuse bad fields and
// read pages in the same way.
package feature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
)

// Port finds the port of a feature in a store, or in a store that it decorates. The error is a [sluice.ErrInvalid] for nil,
// and a [sluice.ErrNotFound] for a store without the feature; lacks says what such a store does, such as "keeps no alerts". A store
// with a method Lacks gives the error itself.
func Port[T any](store sluice.Store, lacks string) (port T, err error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return port, err
	}
	port, found := sluice.StoreAs[T](store)
	if !found {
		if other, is := sluice.StoreAs[interface{ Lacks(lacks string) error }](store); is {
			return port, other.Lacks(lacks)
		}
		return port, fmt.Errorf("a %T %s; a decorator of a store that does needs a method Unwrap() sluice.Store: %w", store, lacks, sluice.ErrNotFound)
	}
	return port, nil
}

// Invalid returns a [sluice.ErrInvalid] of a field that breaks a rule.
func Invalid(field, rule string) error { return &sluice.InvalidError{Field: field, Rule: rule} }

// Duration reads the duration of a field, as [sluice.ParseDuration] does. Empty: 0.
func Duration(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := sluice.ParseDuration(text)
	if err != nil {
		return 0, Invalid(field, err.Error())
	}
	return d, nil
}

// Instant returns an instant as every store can keep it: in UTC and whole microseconds.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// Percent formats a share in percent with some digits, without the sign. A share below 1 is never 100, and a share above 0 never
// 0, so that nobody takes a large share for all or a small one for none.
func Percent(digits int, share float64) string {
	const rounding = 1e-12 // what sums of shares lose
	least := math.Pow10(-digits)
	percent := 100 * share
	switch {
	case share > rounding:
		percent = max(percent, least)
	case share >= 0:
		percent = 0
	}
	if share < 1-rounding {
		percent = min(percent, 100-least)
	}
	return strconv.FormatFloat(percent, 'f', digits, 64)
}

// InstantText formats an instant for people.
func InstantText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// CheckInstant returns a [sluice.ErrInvalid] of a field if a store cannot keep an instant. A zero one says nothing.
func CheckInstant(field string, at time.Time) error {
	if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
		return Invalid(field, fmt.Sprintf("the year %d must be from 1970 to 9999", year))
	}
	return nil
}

// PageSize returns the size of a page: the limit, from 1 to 10,000, or 100 for 0. Another limit is a [sluice.ErrInvalid].
func PageSize(limit int) (int, error) {
	switch {
	case limit == 0:
		return 100, nil
	case limit < 0 || limit > 10_000:
		return 0, Invalid("limit", fmt.Sprintf("%d must be from 1 to 10000", limit))
	}
	return limit, nil
}

// SortedJSON writes a JSON text with the keys of its objects in order and without blanks, so that texts can be compared. It
// leaves other text as it is.
func SortedJSON(text json.RawMessage) json.RawMessage {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if !json.Valid(text) || decoder.Decode(&value) != nil {
		return text
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return sorted
}

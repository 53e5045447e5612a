package worker

import (
	"errors"
	"fmt"
	"slices"
)

// sound returns a handler's error if it can be unwrapped. Otherwise sound returns another in its place, with the parts that
// can be unwrapped. A nil pointer that is an error panics when somebody looks what it wraps, and the panic would end the
// process.
func sound(err error) error {
	why := brokenBy(err)
	if why == nil {
		return err
	}
	parts := partsOf(err)
	if len(parts) == 0 {
		return fmt.Errorf("an error of type %T, which cannot be unwrapped: %v", err, why)
	}
	for i := range parts {
		parts[i] = sound(parts[i])
	}
	text, panicked := tryText(err)
	if panicked != nil {
		text = textOf(errors.Join(parts...))
	}
	return &parted{text, parts}
}

// parted stands for an error of which a part cannot be unwrapped.
type parted struct {
	text  string
	parts []error
}

func (p *parted) Error() string   { return p.text }
func (p *parted) Unwrap() []error { return p.parts }

// brokenBy returns the panic of a search through everything that an error wraps; nil: there was none.
func brokenBy(err error) (why any) {
	defer func() { why = recover() }()
	_ = errors.Is(err, errNobodys)
	_ = errors.As(err, new(*nobodys))
	return nil
}

// partsOf returns what an error wraps; none if it panics.
func partsOf(err error) (parts []error) {
	defer func() {
		if recover() != nil {
			parts = nil
		}
	}()
	switch wraps := err.(type) { //nolint:errorlint // this is how errors are unwrapped
	case interface{ Unwrap() []error }:
		return slices.Clone(wraps.Unwrap())
	case interface{ Unwrap() error }:
		if inner := wraps.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

// nobodys is an error that no handler returns, so a search for it visits everything that an error wraps.
type nobodys struct{}

func (*nobodys) Error() string { return "" }

var errNobodys error = new(nobodys)

// textOf returns the text of a handler's error. The error's own methods may panic, for example on a nil
// pointer.
func textOf(err error) string {
	text, why := tryText(err)
	if why != nil {
		return fmt.Sprintf("an error of type %T, whose text cannot be had: %v", err, why)
	}
	return text
}

// tryText returns the text of an error, or its panic.
func tryText(err error) (text string, panicked any) {
	defer func() { panicked = recover() }()
	return err.Error(), nil
}

package safe

import (
	"fmt"

	"github.com/sluice-queue/sluice"
)

// Checker returns a checker whose panics are errors, for checks that run beside the work of others: a panic would end the
// process. Nil stays nil.
func Checker(inner sluice.PayloadChecker) sluice.PayloadChecker {
	if inner == nil {
		return nil
	}
	return checker{inner}
}

type checker struct{ inner sluice.PayloadChecker }

// Compile compiles a schema.
func (c checker) Compile(schema string) (err error) {
	defer caughtOfChecker(&err)
	return c.inner.Compile(schema)
}

// Check checks a payload.
func (c checker) Check(schema string, payload []byte) (err error) {
	defer caughtOfChecker(&err)
	return c.inner.Check(schema, payload)
}

func caughtOfChecker(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("the payload checker panicked: %v", panicked)
	}
}

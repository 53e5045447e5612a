package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestFailedTestsAreRepeatedWithWhatTheySay(t *testing.T) {
	t.Parallel()
	failed := []string{
		"--- FAIL: TestPays (0.10s)",
		"    --- FAIL: TestPays/twice (0.10s)",
		"        pay_test.go:12: paid twice",
		"        pay_test.go:13: and once more",
		"        pay_test.go:14: and again",
		"        pay_test.go:15: and again",
		"        pay_test.go:16: and again",
		"        pay_test.go:17: and again",
		"        pay_test.go:18: and again",
		"        pay_test.go:19: and again",
	}
	const other = "FAIL\tmodule/two\t0.3s"
	heard := hear(slices.Concat([]string{"ok  \tmodule/one\t1.2s"}, failed, []string{
		"        pay_test.go:20: and again, which nobody reads",
		"FAIL",
		other,
		"ok  \tmodule/three\t1.2s",
		"make: *** [race] Error 1",
	})...)
	want := append(failed, other)
	if !slices.Equal(heard, want) {
		t.Errorf("repeated:\n%s\nwant:\n%s", strings.Join(heard, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatATestRanIsRepeatedWithItsFailedLine(t *testing.T) {
	t.Parallel()
	for _, failed := range []string{
		"            FAIL: testdata/script/pay.txt:33: no match for `paid` found in stdout",
		"        not ok 3 - a job is paid once",                       // Node
		"        ERROR: test_pays_once (test_pay.Pay.test_pays_once)", // Python
	} {
		lines := []string{"    --- FAIL: TestScripts/pay (0.10s)"}
		for i := range 20 {
			lines = append(lines, "            > command "+strconv.Itoa(i))
		}
		heard := hear(append(lines, failed)...)
		if want := append(lines[:1+afterFailure:1+afterFailure], failed); !slices.Equal(heard, want) {
			t.Errorf("repeated:\n%s\nwant:\n%s", strings.Join(heard, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestAStepWithoutFailedTestsRepeatsItsEnd(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 100 {
		lines = append(lines, strconv.Itoa(i))
	}
	heard := hear(lines...)
	if want := lines[100-mostFailures:]; !slices.Equal(heard, want) {
		t.Errorf("repeated %q, want %q", heard, want)
	}
}

// hear returns the lines that a run repeats at its end.
func hear(lines ...string) []string {
	var f failures
	for _, line := range lines {
		f.hear(line)
	}
	return f.lines()
}

// Command coverage reads a coverage profile and prints the share of each package's statements that
// the tests ran. If a named package stays below the bound, the command fails:
//
//	coverage -profile coverage.out -least 85 PACKAGE…
//
// Read next: the function report for the output, and the Makefile, which runs the command after the
// tests.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// share is how many statements a package has, and how many of them ran.
type share struct{ ran, all int }

func (s share) percent() float64 { return 100 * float64(s.ran) / float64(max(s.all, 1)) }

func main() {
	profile := flag.String("profile", "coverage.out", "file that go test -coverprofile wrote")
	least := flag.Float64("least", 85, "bound of the named packages, in percent")
	flag.Parse()
	low, err := report(*profile, *least, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(2)
	}
	if len(low) > 0 {
		fmt.Fprintf(os.Stderr, "coverage: below %g %%: %s\n", *least, strings.Join(low, ", "))
		os.Exit(1)
	}
}

// report prints the shares, and returns the named packages below the bound.
func report(profile string, least float64, named []string) ([]string, error) {
	shares, err := read(profile)
	if err != nil {
		return nil, err
	}
	var low []string
	for _, name := range named {
		if shares[name].percent() < least {
			low = append(low, name)
		}
	}
	fmt.Println("coverage, in percent of the statements:")
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		bound := ""
		if slices.Contains(named, name) {
			bound = fmt.Sprintf("  (at least %g)", least)
		}
		fmt.Printf("  %5.1f  %s%s\n", shares[name].percent(), name, bound)
	}
	return low, nil
}

// read adds up a profile by package. Each test program repeats a block; the block ran if one of
// them ran it.
func read(profile string) (map[string]share, error) {
	file, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	statements, ran := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		if strings.HasPrefix(lines.Text(), "mode:") {
			continue
		}
		fields := strings.Fields(lines.Text()) // file:from,to statements times
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s:%d: %q is no line of a profile", profile, number, lines.Text())
		}
		block := fields[0]
		if statements[block], err = strconv.Atoi(fields[1]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", profile, number, err)
		}
		ran[block] = ran[block] || fields[2] != "0"
	}
	shares := map[string]share{}
	for block, n := range statements {
		file, _, _ := strings.Cut(block, ":")
		one := shares[path.Dir(file)]
		one.all += n
		if ran[block] {
			one.ran += n
		}
		shares[path.Dir(file)] = one
	}
	return shares, lines.Err()
}

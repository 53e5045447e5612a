package cell

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// tick is the unit of processor times in /proc: USER_HZ is 100 on every current Linux.
	tick = 10 * time.Millisecond
	// settle is the wait before the server's times are read. By then, the parent has the times of ended sessions, and
	// the last writes are done.
	settle = 300 * time.Millisecond
)

// cpu is user plus system time.
type cpu struct{ client, server time.Duration }

func (c cpu) minus(before cpu) cpu { return cpu{c.client - before.client, c.server - before.server} }
func (c cpu) plus(more cpu) cpu    { return cpu{c.client + more.client, c.server + more.server} }

// per1000 returns the processor time of client and server together in ms per 1,000 of n jobs.
func (c cpu) per1000(n int) float64 { return millis(c.client+c.server) * 1000 / float64(n) }

// into adds the processor times of n jobs to a result. ServerCPU is set only if the task has a server.
func (c cpu) into(result Result, n int, task Task) {
	per1000 := func(d time.Duration) float64 { return millis(d) * 1000 / float64(n) }
	result[ClientCPU], result[TotalCPU] = per1000(c.client), per1000(c.client+c.server)
	if task.ServerPID != 0 {
		result[ServerCPU] = per1000(c.server)
	}
}

// usedCPU returns the processor time so far of this process, then, after a wait of settle, of all processes of a
// server.
func usedCPU(serverPID int) (cpu, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return cpu{}, fmt.Errorf("getrusage: %w", err)
	}
	out := cpu{client: time.Duration(own.Utime.Nano() + own.Stime.Nano())}
	if serverPID == 0 {
		return out, nil
	}
	time.Sleep(settle)
	var err error
	out.server, err = serverCPU(serverPID)
	return out, err
}

// serverCPU adds up the processor times of a process, its live children and its ended children.
func serverCPU(pid int) (time.Duration, error) {
	root, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return 0, fmt.Errorf("processor time of the server: %w", err)
	}
	ticks := root.own + root.ended
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		child, err := readStat(filepath.Base(filepath.Dir(file)))
		if err == nil && child.parent == pid { // an unreadable process has just ended
			ticks += child.own
		}
	}
	return time.Duration(ticks) * tick, nil
}

// procStat holds figures of /proc/pid/stat: the process's own ticks, and the ticks of its ended children.
type procStat struct {
	parent     int
	own, ended int64
}

func readStat(pid string) (procStat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(text))
}

// parseStat parses a line of /proc/pid/stat. The name in brackets may contain any characters.
func parseStat(text string) (procStat, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const state, parent, utime, stime, cutime, cstime = 0, 1, 11, 12, 13, 14
	if len(fields) <= cstime {
		return procStat{}, fmt.Errorf("/proc/pid/stat has %d fields after the name (state %d): %q", len(fields), state, text)
	}
	numbers := make(map[int]int64)
	for _, i := range []int{parent, utime, stime, cutime, cstime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return procStat{}, fmt.Errorf("/proc/pid/stat: %w", err)
		}
		numbers[i] = n
	}
	return procStat{parent: int(numbers[parent]), own: numbers[utime] + numbers[stime], ended: numbers[cutime] + numbers[cstime]}, nil
}

// peakMemory returns the most resident memory of this process so far, in MiB.
func peakMemory() (float64, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Maxrss) / 1024, err
}

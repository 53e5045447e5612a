package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
)

// kind is what a made-up mention is to show.
type kind string

const (
	plain   kind = "plain"   // an ingredient's name among brands, sizes and noise
	typo    kind = "typo"    // the same with a slip of the pen: right, or on hold, but never another one
	twin    kind = "twin"    // a doubtful name that both sources use: confirmed
	single  kind = "single"  // a doubtful name that one source uses: on hold
	decoy   kind = "decoy"   // no food
	garbage kind = "garbage" // no name at all: a dead letter
)

// made is a mention, and what is expected of it.
type made struct {
	kitchen.Mention
	kind     kind
	expected string // the ingredient; empty where there is none
}

// twins are names that are doubtful alone, and what they mean; singles those that nobody else uses.
var (
	twins = map[string]string{
		"tomaten pure": "tomato puree", "basmti rijst": "basmati rice", "brokoli": "broccoli", "parmezan": "parmesan",
		"mozarela": "mozzarella", "kokos coconut mlk": "coconut milk", "chiken brst": "chicken breast", "spinnach leafs": "spinach",
	}
	singles = []string{"dragon fruit jelly", "kale krisps", "durian", "quinoa flakes", "yuzu", "samphire"}
	garbles = []string{"???", "12345", "500 g", "---", "3 x 400", "…"}
)

// generate makes up mentions, the same for the same number. Of each hundred some 45 are plain, 12 typos, 10 decoys and 3
// garbage; the doubtful ones are few. Some of the plain ones meet an outage first.
func generate(n int) []made {
	pantry := kitchen.DefaultPantry()
	g := &generator{Rand: rand.New(rand.NewPCG(7, uint64(n))), pantry: pantry}
	for name := range pantry.Ingredients {
		g.names = append(g.names, name)
	}
	slices.Sort(g.names)
	var all []made
	for text, means := range twins {
		for _, source := range kitchen.Sources() {
			all = append(all, made{Mention: kitchen.Mention{Source: source, Raw: g.dress(text)}, kind: twin, expected: means})
		}
	}
	for _, text := range singles {
		all = append(all, made{Mention: kitchen.Mention{Source: g.source(), Raw: g.dress(text)}, kind: single})
	}
	slices.SortFunc(all, func(a, b made) int { return strings.Compare(a.Source+a.Raw, b.Source+b.Raw) }) // a map has no order
	for len(all) < n {
		all = append(all, g.one())
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

type generator struct {
	*rand.Rand
	pantry kitchen.Pantry
	names  []string
}

func pickOne[T any](g *generator, all []T) T { return all[g.IntN(len(all))] }

func (g *generator) source() string { return pickOne(g, kitchen.Sources()) }

func (g *generator) one() made {
	m := made{Mention: kitchen.Mention{Source: g.source()}}
	switch lot := g.IntN(100); {
	case lot < 4:
		m.kind, m.Raw = garbage, pickOne(g, garbles)
	case lot < 16:
		m.kind, m.Raw = decoy, g.dress(pickOne(g, g.pantry.Decoys)+" "+pickOne(g, []string{"lemon", "salmon", "vanilla", "fresh", ""}))
	default:
		m.kind, m.expected = plain, pickOne(g, g.names)
		name := pickOne(g, append([]string{m.expected}, g.pantry.Ingredients[m.expected]...))
		if lot < 30 && len(name) > 8 {
			m.kind, name = typo, g.slip(name)
		}
		m.Raw = g.dress(name)
		if g.IntN(12) == 0 {
			m.Faults = 1 + g.IntN(2)
		}
	}
	return m
}

// dress puts a name among what shops and recipes write around it.
func (g *generator) dress(name string) string {
	unit := pickOne(g, []string{"g", "kg", "ml", "oz", "lbs", "pcs"})
	size := fmt.Sprintf("%d%s", 1+g.IntN(900), unit)
	brand, noise := pickOne(g, g.pantry.Brands), pickOne(g, g.pantry.Noise[:4])
	brand = strings.ToUpper(brand[:1]) + brand[1:]
	switch g.IntN(5) {
	case 0:
		return fmt.Sprintf("%s %s, %s", brand, strings.ToUpper(name), size)
	case 1:
		return fmt.Sprintf("%s %s of %s", size, noise, name)
	case 2:
		return fmt.Sprintf("%s %s %s (pack of %d)", brand, noise, name, 2+g.IntN(10))
	case 3:
		return fmt.Sprintf("%s  %d x %s", name, 2+g.IntN(5), size)
	}
	return fmt.Sprintf("%s – %s / %s", name, brand, size)
}

// slip doubles, drops or swaps a letter.
func (g *generator) slip(name string) string {
	at := 1 + g.IntN(len(name)-3)
	switch g.IntN(3) {
	case 0:
		return name[:at] + name[at:at+1] + name[at:]
	case 1:
		return name[:at] + name[at+1:]
	}
	return name[:at] + name[at+1:at+2] + name[at:at+1] + name[at+2:]
}

package kitchen

// Pantry is what the application knows of food to begin with.
type Pantry struct {
	// Ingredients are the canonical names, with other names for the same.
	Ingredients map[string][]string
	// Brands and Noise are words that say nothing of what it is, Units those that follow a figure.
	Brands, Noise, Units []string
	// Decoys are words of things that are no food, whatever else is in their name.
	Decoys []string
}

// DefaultPantry is that of the demo. An application of yours reads its own from wherever it is kept.
func DefaultPantry() Pantry {
	return Pantry{
		Ingredients: map[string][]string{
			"carrot": {"carrots"}, "tomato": {"tomatoes", "roma tomatoes", "vine tomatoes"}, "tomato puree": {"tomato paste", "passata"},
			"cucumber": {"cucumbers"}, "aubergine": {"aubergines", "eggplant", "eggplants"}, "courgette": {"courgettes", "zucchini"},
			"red bell pepper": {"red bell peppers", "red capsicum"}, "black pepper": {"black peppercorns"}, "broccoli": {"broccoli florets"},
			"cauliflower": {"cauliflowers"}, "spinach": {"baby spinach", "spinach leaves"}, "potato": {"potatoes", "new potatoes"},
			"sweet potato": {"sweet potatoes"}, "spring onion": {"spring onions", "scallions"}, "red onion": {"red onions"},
			"garlic": {"garlic cloves", "garlic bulb"}, "ginger": {"ginger root"}, "mushroom": {"mushrooms", "button mushrooms"},
			"coriander": {"cilantro", "coriander leaves"}, "basil": {"basil leaves"}, "parsley": {"flat leaf parsley"},
			"rosemary": {"rosemary sprigs"}, "strawberry": {"strawberries"}, "blueberry": {"blueberries"}, "banana": {"bananas"},
			"lemon": {"lemons"}, "pineapple": {"pineapples"}, "chicken breast": {"chicken breasts", "chicken breast fillets"},
			"chicken thigh": {"chicken thighs"}, "minced beef": {"ground beef", "beef mince"}, "salmon fillet": {"salmon fillets"},
			"prawn": {"prawns", "shrimp"}, "mozzarella": {"mozzarella cheese"}, "parmesan": {"parmigiano reggiano", "parmesan cheese"},
			"cheddar": {"cheddar cheese"}, "butter": {"unsalted butter", "salted butter"}, "buttermilk": {}, "whole milk": {"full fat milk"},
			"oat milk": {"oat drink"}, "coconut milk": {}, "greek yogurt": {"greek style yogurt"}, "egg": {"eggs"}, "basmati rice": {},
			"spaghetti": {"spaghetti pasta"}, "wheat flour": {"plain flour", "all purpose flour"}, "brown sugar": {"light brown sugar"},
			"olive oil": {"extra virgin olive oil"}, "sunflower oil": {}, "soy sauce": {"soya sauce"}, "peanut butter": {},
			"chickpea": {"chickpeas", "garbanzo beans"}, "kidney bean": {"kidney beans"}, "red lentil": {"red lentils"},
			"cinnamon": {"cinnamon sticks", "ground cinnamon"}, "paprika": {"smoked paprika"}, "cumin": {"ground cumin", "cumin seeds"},
			"vanilla extract": {}, "baking powder": {}, "dark chocolate": {}, "maple syrup": {},
		},
		Brands: []string{"barilla", "heinz", "kikkoman", "knorr", "nestle", "tesco", "aldi", "mutti", "alpro", "lurpak", "galbani", "bertolli"},
		Noise:  []string{"organic", "fresh", "premium", "value", "of", "the", "approx", "finest", "washed", "sliced", "diced", "chopped", "free", "range", "in", "a", "pack"},
		Units:  []string{"g", "kg", "mg", "ml", "cl", "l", "oz", "lb", "lbs", "pcs", "ct", "x", "tbsp", "tsp", "cup", "cups", "bunch", "tin"},
		Decoys: []string{"kitchen towels", "dish soap", "cat food", "dog food", "coffee filters", "baking paper", "shampoo", "light bulb", "napkins", "candle", "detergent", "toothpaste"},
	}
}

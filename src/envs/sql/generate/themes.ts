/** What the tables of a generated database are about. */
export interface Theme {
  readonly name: string
  /** Where things belong. */
  readonly place: { readonly table: string; readonly one: string; readonly many: string }
  readonly thing: { readonly table: string; readonly one: string; readonly many: string }
  readonly kinds: readonly [string, string, string, string, string]
  /** What is done with things. */
  readonly deed: { readonly table: string; readonly one: string; readonly many: string }
  readonly states: readonly [string, string, string]
}

export const themes: readonly Theme[] = [
  {
    name: 'library',
    place: { table: 'branch', one: 'branch', many: 'branches' },
    thing: { table: 'book', one: 'book', many: 'books' },
    kinds: ['novel', 'atlas', 'poetry', 'history', 'science'],
    deed: { table: 'loan', one: 'loan', many: 'loans' },
    states: ['returned', 'overdue', 'lost'],
  },
  {
    name: 'garage',
    place: { table: 'workshop', one: 'workshop', many: 'workshops' },
    thing: { table: 'vehicle', one: 'vehicle', many: 'vehicles' },
    kinds: ['van', 'lorry', 'bus', 'tractor', 'saloon'],
    deed: { table: 'repair', one: 'repair', many: 'repairs' },
    states: ['finished', 'waiting', 'refused'],
  },
  {
    name: 'ferry',
    place: { table: 'harbour', one: 'harbour', many: 'harbours' },
    thing: { table: 'boat', one: 'boat', many: 'boats' },
    kinds: ['ferry', 'tug', 'barge', 'yacht', 'trawler'],
    deed: { table: 'trip', one: 'trip', many: 'trips' },
    states: ['sailed', 'delayed', 'cancelled'],
  },
  {
    name: 'canteen',
    place: { table: 'canteen', one: 'canteen', many: 'canteens' },
    thing: { table: 'dish', one: 'dish', many: 'dishes' },
    kinds: ['soup', 'salad', 'roast', 'pasta', 'dessert'],
    deed: { table: 'serving', one: 'serving', many: 'servings' },
    states: ['paid', 'free', 'returned'],
  },
]

/** Names that apps are filled with. */
export const people = [
  'Ada Moran',
  'Bo Lindqvist',
  'Chidi Okafor',
  'Dana Petrov',
  'Elif Kaya',
  'Farid Nasser',
  'Greta Holm',
  'Hugo Santos',
  'Ines Duarte',
  'Jun Takeda',
  'Kira Novak',
  'Liam Byrne',
] as const
export const cities = [
  'Aarhus',
  'Bergen',
  'Cork',
  'Delft',
  'Evora',
  'Faro',
  'Ghent',
  'Haifa',
  'Izmir',
  'Jena',
  'Krakow',
  'Lyon',
] as const
export const things = [
  'lamp',
  'kettle',
  'notebook',
  'backpack',
  'bicycle pump',
  'desk fan',
  'wall clock',
  'umbrella',
  'headset',
  'water bottle',
  'tripod',
  'toolbox',
] as const
export const colours = ['red', 'blue', 'green', 'black', 'white', 'yellow'] as const
export const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const

/** The first part of a person's name in lower case, as in mail addresses. */
export const firstName = (person: string): string => (person.split(' ')[0] ?? person).toLowerCase()

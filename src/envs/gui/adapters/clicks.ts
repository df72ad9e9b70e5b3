/** Clicks by the names that Anthropic's and Qwen's computer tools share, and the canonical actions that they are. */
export const clicks = {
  left_click: 'click',
  right_click: 'right_click',
  middle_click: 'middle_click',
  double_click: 'double_click',
  triple_click: 'triple_click',
} as const
export const clickNames = Object.entries(clicks)

export { familyOf, forkLabel } from './family.ts'
export { conversationCalls, namesOf, placesOf, type TreeMember, type TreeNode, treeOf } from './tree.ts'
